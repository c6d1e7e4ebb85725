/** All that the page shows of one state in which everything has happened: its document, without a browser. */
import fs from 'node:fs';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { type HTMLElement, Window } from 'happy-dom';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { viewSettingsOf } from '../../../src/daemon/view-thread.ts';
import { JobtailError } from '../../../src/errors.ts';
import type { TaskId } from '../../../src/job.ts';
import type { FleetAgent } from '../../../src/view/contract/events.ts';
import { AgentCounts, Figures } from '../../../src/view/events/figures.ts';
import type { FleetRead } from '../../../src/view/fleet.ts';
import { serveView } from '../../../src/view/serve.ts';
import { expectCases, stepOf } from '../../support/errors.ts';
import { FAILING, NOW, SEARCHED, SETTLED, TASK, writeState } from '../../support/full-state.ts';
import { directoryOfFile } from '../../support/temp-directory.ts';
import { difference, outline } from '../../support/view-models.ts';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
const MAIN = '../../../src/view/page/main.tsx';
const EXPECTED = path.join(import.meta.dirname, 'printed-page.txt');
/** Far beyond what the page takes to show something on a busy machine. */
const PATIENCE = { timeout: 60_000, interval: 20 };

const directory = directoryOfFile();
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const STDOUT = `before\n${'a\r'.repeat(3)}bar 3\nTraceback (most recent call last):\n  File "a.py", line 7\n    solve()\n    ^^^^^^^\nValueError: nan\nstep=1 loss=0.5\nstep=2 loss=0.4\n\u001b[31mred\u001b[92;44mon\u001b[38;2;1;2;3mx\u001b[48;2;9;9;9my\u001b[0;90mz\u001b[0m pass\u200bword\nWARNING: late\n`;

type Written = Awaited<ReturnType<typeof writeState>>;

/** Puts content into a mirror, as the agent does. */
function write({ store, config }: Written, file: 'stdout' | 'stderr', content: string): void {
  fs.writeFileSync(path.join(config.mirror.directory, FAILING, 'live', TASK, `${file}.log`), content);
  const row = store.liveFiles.get(FAILING, { taskId: TASK, file });
  if (row !== undefined) store.liveFiles.save({ ...row, position: Buffer.byteLength(content) });
}

/** What the page has kinds of its own for. */
function writeFiles(written: Written): void {
  const { store, config } = written;
  write(written, 'stdout', STDOUT);
  const results = path.join(config.mirror.directory, FAILING, 'results', TASK);
  fs.mkdirSync(results, { recursive: true });
  fs.writeFileSync(path.join(results, 'a.dat'), Buffer.from([0, 1, 2, 255]));
  fs.writeFileSync(path.join(results, 't.csv'), 'name,value\nb,10\na,9\n');
  const one = store.results.get(FAILING, `/${TASK}/a.dat`);
  fs.writeFileSync(path.join(results, 'p.png'), Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]));
  fs.writeFileSync(path.join(results, 'p.pdf'), '%PDF-1.4\n');
  fs.copyFileSync(path.join(results, 'p.png'), path.join(results, 'q.png'));
  const more = { 't.csv': 20, 'p.png': 8, 'q.png': 8, 'p.pdf': 9 };
  if (one === undefined) throw new Error('it was just written');
  store.results.saveAll(Object.entries(more).map(([name, bytes]) => ({ ...one, name: `/${TASK}/${name}`, bytes })));
}

/** A name that would turn what is behind it. */
function rename({ store }: Written): void {
  const row = store.jobInformation.get(SETTLED);
  if (row !== undefined) store.jobInformation.save({ ...row, information: { ...row.information, name: 'job\u202e' } });
}

/** Eight more tasks of a job, one of which has written. */
function addTasks({ store }: Written): void {
  const [row] = store.liveFiles.ofJob(SETTLED);
  if (row === undefined) throw new Error('it was just written');
  for (let number = 0; number < 8; number += 1)
    store.liveFiles.save({ ...row, taskId: `911${number}` as TaskId, position: number % 2, grownAt: NOW - number });
}

/** The file of progress of a task, which is rewritten in place. */
function writeProgress({ store, config }: Written, content: string): void {
  const [row] = store.liveFiles.ofJob(SETTLED);
  if (row === undefined) return;
  fs.writeFileSync(path.join(config.mirror.directory, SETTLED, 'live', row.taskId, 'progress.log'), content);
  const progress = { ...row, file: 'progress', position: content.length, generation: 1 + content.length } as const;
  store.liveFiles.save({ ...progress, grownAt: NOW });
}

/** A pass that lists the size of a result, so many bytes of which have arrived, and some of another one. */
function arrive({ store }: Written, bytes: number): void {
  const last = store.resultSyncs.get(FAILING);
  const arriving: [string, number][] = [
    [`/${TASK}/b.dat`, bytes],
    [`/${TASK}/c.dat`, 512],
  ];
  const now = { jobId: FAILING, endedAt: null, updatedAt: bytes, arriving, way: 'service' } as const;
  if (last !== undefined) store.resultSyncs.save({ ...last, ...now });
  const result = store.results.get(FAILING, `/${TASK}/b.dat`);
  if (result !== undefined) store.results.saveAll([{ ...result, bytes: 4_096 }]);
}

/** Two more agents, one of which has the mirrors of a job on its own machine. */
function fleetOf({ store }: Written): FleetRead {
  const anna: FleetAgent = {
    ...{ name: 'anna', state: 'alive', jobs: 2, maxJobs: 9, pollAgeMs: 0, callsLastMinute: 12, lacks: null },
    ...{ notFollowed: 0, seenAt: NOW - 1_000, host: 'h1', version: '1', view: 'https://jobs.example.org/anna/' },
  };
  const more = {
    name: 'ben\u202e',
    state: 'gone',
    lacks: 'no <b>route',
    notFollowed: 1,
    pollAgeMs: null,
    view: null,
  } as const;
  const places = new Map([
    [FAILING, { owner: 'anna', isElsewhere: false }],
    [SEARCHED, { owner: more.name, isElsewhere: true }],
    [SETTLED, { owner: 'anna', isElsewhere: false }],
  ]);
  return { store, name: 'anna', agents: [anna, { ...anna, ...more }], waitingJobs: 1, places };
}

/** The work of the agent in twenty seconds: none, and then some. */
function figures(): Figures {
  const all = new Figures();
  const counts = new AgentCounts();
  for (const at of [NOW - 30_000, NOW - 20_000]) all.add({ ...counts } as AgentCounts, at);
  const calls = { DownloadFileFromCluster: 2, Other: 1 };
  all.add({ bytes: 40_960, calls, failures: { 'no answer': 3 } } as unknown as AgentCounts, NOW - 10_000);
  return all;
}

/** What the page asked for, and the end of all answers. */
interface Network {
  readonly asked: string[];
  cut: AbortController;
  /** Holds the places of lines. */
  held: Promise<void>;
  /** The last answer with a place: all of it has come. */
  answered?: Promise<Response> | undefined;
  /** What ends a request, where the page can end it. */
  readonly signals: Map<AbortSignal, string>;
}

/** Rows are as high as the page expects: when they are measured must not matter. Of a file, five are on the screen. */
function layOut(window: Window): void {
  const tops = new WeakMap<HTMLElement, number>();
  Object.defineProperties(window.HTMLElement.prototype, {
    offsetWidth: { get: () => 600 },
    offsetHeight: { get: () => 20 },
    clientWidth: { get: () => 600 },
    clientHeight: {
      get(this: HTMLElement) {
        return this.classList.contains('rows') ? 100 : 600;
      },
    },
    scrollHeight: {
      get(this: HTMLElement) {
        const inside = this.querySelector('.rows-all') as unknown as HTMLElement | null;
        return Math.max(this.clientHeight, Number.parseFloat(inside?.style.height ?? '0'));
      },
    },
    scrollTop: {
      get(this: HTMLElement) {
        return tops.get(this) ?? 0;
      },
      set(this: HTMLElement, to: number) {
        const top = Math.max(0, Math.min(to, this.scrollHeight - this.clientHeight));
        if (top === this.scrollTop) return;
        tops.set(this, top);
        window.requestAnimationFrame(() => this.dispatchEvent(new window.Event('scroll')));
      },
    },
  });
}

/** What plots draw on each canvas: the texts, and the colours of lines. */
const drawn = new WeakMap<object, ReturnType<typeof contextOf>>();

const NOTHING: object = new Proxy(() => NOTHING, { get: () => () => NOTHING });

function contextOf(canvas: object) {
  const made = new Set<string>();
  const calls: Readonly<Record<string, (...of: readonly unknown[]) => unknown>> = {
    measureText: () => ({ width: 8 }),
    clearRect: () => made.clear(),
    fillText: (text) => made.add(JSON.stringify(text)),
  };
  const context = new Proxy(
    { canvas },
    {
      get: (_, name) => calls[String(name)] ?? NOTHING,
      set: (_, name, value) => {
        if (name === 'strokeStyle') made.add(String(value));
        return true;
      },
    },
  );
  return { made, context };
}

/** A document of happy-dom as that of a browser. */
function openWindow(url: string, network: Network): Window {
  const window = new Window({ url, width: 1280, height: 800 });
  const html = fs.readFileSync(path.join(import.meta.dirname, '../../../src/view/page/index.html'), 'utf8');
  window.document.write(html.replaceAll(/<(?:script|link rel="stylesheet").*/g, ''));
  layOut(window);
  const own = [
    ...['document', 'location', 'history', 'localStorage', 'matchMedia', 'navigator', 'Node', 'NodeFilter', 'Range'],
    ...['ResizeObserver', 'IntersectionObserver', 'devicePixelRatio', 'innerWidth', 'innerHeight'],
  ];
  const bound = ['addEventListener', 'removeEventListener', 'requestAnimationFrame', 'cancelAnimationFrame'];
  const types = Object.getOwnPropertyNames(window).filter((name) =>
    /^(?:HTML|SVG)?\w*(?:Element|Event|Node)$/.test(name),
  );
  const values = window as unknown as Record<string, unknown>;
  for (const name of [...own, ...types]) vi.stubGlobal(name, values[name]);
  for (const name of bound) vi.stubGlobal(name, (values[name] as (...all: unknown[]) => unknown).bind(window));
  vi.stubGlobal('window', window);
  vi.stubGlobal('CSS', { highlights: new Map<string, Set<object>>() });
  vi.stubGlobal('Highlight', Set);
  vi.stubGlobal('getComputedStyle', ({ style }: HTMLElement) => style);
  vi.stubGlobal('Path2D', new Proxy(Object, { construct: () => NOTHING }));
  Object.defineProperty(window.HTMLCanvasElement.prototype, 'getContext', {
    value(this: HTMLElement) {
      const before = drawn.get(this) ?? contextOf(this);
      drawn.set(this, before);
      return before.context;
    },
  });
  const ask = globalThis.fetch;
  vi.stubGlobal('fetch', (to: string, { signal, ...options }: RequestInit) => {
    network.asked.push(to);
    if (signal != null) network.signals.set(signal, to);
    const signals = [network.cut.signal, ...(signal == null ? [] : [signal])];
    const answer = ask(new URL(to, url), { ...options, signal: AbortSignal.any(signals) });
    if (!to.startsWith('api/place')) return answer;
    const whole = answer.then(async (response) => new Response(await response.text(), response));
    network.answered = network.held.then(() => whole);
    return network.answered;
  });
  return window;
}

it('shows the whole of a state in which everything has happened', async () => {
  let now = NOW;
  vi.spyOn(Date, 'now').mockImplementation(() => now);
  vi.stubEnv('TZ', 'UTC');
  const written = await writeState(directory);
  writeFiles(written);
  rename(written);
  const failures: unknown[] = [];
  const settings = viewSettingsOf(written.config, { program: '1.2.3', agentPid: null });
  const fleet = fleetOf(written);
  let lost: Error | undefined;
  const read = () => (lost === undefined ? Promise.resolve(fleet) : Promise.reject(lost));
  const view = await serveView({
    settings: { ...settings, listen: { host: '127.0.0.1', port: 0 } },
    ...{
      fleet: { read, close: async () => {} },
      figures: figures(),
      onFailure: (error: unknown) => failures.push(error),
      readEveryMs: 50,
    },
  });
  onTestFinished(() => view.close());
  const asked: string[] = [];
  const network: Network = {
    ...{ asked, cut: new AbortController(), signals: new Map(), held: Promise.resolve() },
  };
  const trees = () => asked.filter((address) => address.includes('api/results?')).length;
  let treesBefore = 0;
  const window = openWindow(view.link(), network);
  const { document } = window;
  await import(MAIN);
  let before: readonly string[] = [];
  let dataBefore = '';
  /** Keys that were not left to the browser. */
  const taken: string[] = [];
  const marks = () => [...(CSS as unknown as { highlights: Map<string, Set<object>> }).highlights.values()];
  const data = () =>
    JSON.stringify({
      ...{ at: window.location.hash, title: document.title, ...document.documentElement.dataset },
      marked: marks().flatMap((all) => [...all].map(String)),
    });
  const lines = () =>
    outline(document.body, (canvas) => [...(drawn.get(canvas)?.made ?? [])])
      .replaceAll(directory, 'DIR')
      .replaceAll(`process ${process.pid}`, 'process 1')
      .replaceAll(/pass=[\w-]+/g, 'pass=PASS')
      .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')
      .trimEnd()
      .split('\n');
  const shown = () => {
    const keys = taken.length > 0 ? [`taken: ${taken.join(' ')}`] : [];
    const all = [...keys, ...(data() === dataBefore ? [] : [data()]), ...difference(before, lines())];
    return all.length > 0 ? all : ['as before'];
  };
  const soon = (condition: () => unknown) => vi.waitFor(condition, PATIENCE);
  const turns = async () => {
    for (let times = 0; times < 20; times++) await turn();
  };
  const one = (selector: string, place = 0) =>
    (selector === '' ? (document.activeElement ?? document.body) : document.querySelectorAll(selector)[place]) as
      | (HTMLElement & { value: string })
      | undefined;
  const fire = (selector: string, type: string, of: object = {}, place = 0) =>
    one(selector, place)?.dispatchEvent(Object.assign(new window.Event(type, { bubbles: true, cancelable: true }), of));
  let release = () => {};
  /** What a person does, the agent, the network and the fleet; printed-page.txt has it in this language. */
  const steps: Readonly<Record<string, (...of: never[]) => unknown>> = {
    see: async (selector: string) => {
      await soon(() => expect(document.querySelector(selector), selector).not.toBeNull());
      await turns();
    },
    reads: (selector: string, text: string) => soon(() => expect(one(selector)?.textContent).toContain(text)),
    go: (hash: string) => {
      window.location.hash = hash;
    },
    press: (...keys: string[]) => {
      for (const all of keys) {
        const [key = '', modifier = ''] = all.split('+').reverse();
        const init = { key, bubbles: true, cancelable: true, [`${modifier.toLowerCase()}Key`]: true };
        const event = new window.KeyboardEvent('keydown', init);
        one('')?.dispatchEvent(event);
        if (event.defaultPrevented) taken.push(all);
      }
    },
    blur: () => one('')?.blur(),
    click: (selector: string, place?: number) => one(selector, place)?.click(),
    fire,
    type: (selector: string, value: string, place?: number) => {
      for (const type of ['input', 'change']) {
        Object.assign(one(selector, place) ?? {}, { value });
        fire(selector, type, {}, place);
      }
    },
    scroll: (scrollTop: number) => {
      Object.assign(one('.rows') ?? {}, { scrollTop });
      // The list takes its place from the first one.
      for (let times = 0; times < 2; times++) fire('.rows', 'scroll');
    },
    write: (file: 'stdout' | 'stderr', text: string) => write(written, file, text),
    progress: (text: string) => writeProgress(written, text),
    tasks: () => addTasks(written),
    arrive: (bytes: number) => {
      treesBefore = trees();
      arrive(written, bytes);
    },
    /** Bytes that arrive do not request the tree again. */
    sameTree: () => expect([treesBefore > 0, trees()]).toEqual([true, treesBefore]),
    clock: (ms: number) => {
      now = NOW + ms;
    },
    hold: () => {
      network.held = new Promise((resolve) => (release = resolve));
      network.answered = undefined;
    },
    release: async () => {
      await soon(() => expect(network.answered).toBeDefined());
      release();
      await network.answered;
      await turns();
    },
    cut: () => network.cut.abort(),
    mend: () => {
      network.cut = new AbortController();
    },
    fleet: () => {
      lost = new JobtailError('fleet', 'connection refused', { hint: 'start it' });
    },
  };
  const text = fs.readFileSync(EXPECTED, 'utf8').split(/^> /m).slice(1);
  const expected = text.map((part) =>
    part.split('\n').flatMap((line) => (line.startsWith('  ') ? [line.slice(2)] : [])),
  );
  let { timeout } = PATIENCE;
  await expectCases(EXPECTED, async (all) => {
    taken.length = 0;
    for (const step of all.split('; ')) await stepOf(step, steps);
    const wanted = expected.shift();
    await vi
      .waitFor(() => expect(shown()).toEqual(wanted), { ...PATIENCE, timeout: wanted?.length === 0 ? 2_000 : timeout })
      .catch(() => (timeout = 5_000));
    const result = shown();
    before = lines();
    dataBefore = data();
    return result;
  });
  expect(failures).toEqual([]);
  // A proxy may give the page a path of its own.
  expect(asked.filter((address) => !address.startsWith('api/'))).toEqual([]);
  const unended = [...network.signals].filter(([signal]) => !signal.aborted).map(([, address]) => address);
  // The signal of a proof is a limit of its time.
  const running = unended.filter((address) => !address.startsWith('api/hello'));
  expect(running, 'what the page requests ends with what it is for').toEqual(['api/events?job=998']);
});
