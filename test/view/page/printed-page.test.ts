/** All that the page shows of one state in which everything has happened: its document, without a browser. */
import fs from 'node:fs';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { type Element, type HTMLElement, Window } from 'happy-dom';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { viewSettingsOf } from '../../../src/daemon/view-thread.ts';
import { JobtailError } from '../../../src/errors.ts';
import type { TaskId } from '../../../src/job.ts';
import type { FleetAgent } from '../../../src/view/contract/events.ts';
import { AgentCounts, Figures } from '../../../src/view/events/figures.ts';
import type { FleetRead } from '../../../src/view/fleet.ts';
import { serveView } from '../../../src/view/serve.ts';
import { FAILING, NOW, SEARCHED, SETTLED, TASK, writeState } from '../../support/full-state.ts';
import { directoryOfFile } from '../../support/temp-directory.ts';
import { difference, outline } from '../../support/view-models.ts';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
const MAIN = '../../../src/view/page/main.tsx';
const EXPECTED = path.join(import.meta.dirname, 'printed-page.txt');
/** Far beyond what the page takes to show something on a busy machine. */
const PATIENCE_MS = 60_000;

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
  const more = { 't.csv': 20, 'p.png': 8, 'p.pdf': 9 };
  if (one === undefined) throw new Error('it was just written');
  store.results.saveAll(Object.entries(more).map(([name, bytes]) => ({ ...one, name: `/${TASK}/${name}`, bytes })));
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
    'document',
    'location',
    'history',
    'localStorage',
    'matchMedia',
    'navigator',
    'ResizeObserver',
    'IntersectionObserver',
    'Node',
    'NodeFilter',
    'Range',
    'devicePixelRatio',
    'innerWidth',
    'innerHeight',
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
    },
  });
  onTestFinished(() => view.close());
  const asked: string[] = [];
  const network: Network = {
    ...{ asked, cut: new AbortController(), signals: new Map(), held: Promise.resolve() },
  };
  const isTree = (address: string) => address.includes('api/results?');
  let trees = 0;
  const window = openWindow(view.link(), network);
  const { document } = window;
  await import(MAIN);
  let before: readonly string[] = [];
  let dataBefore = '';
  const marks = () => [...(CSS as unknown as { highlights: Map<string, Set<object>> }).highlights.values()];
  const data = () =>
    JSON.stringify({ ...document.documentElement.dataset, marked: marks().flatMap((all) => [...all].map(String)) });
  const lines = () =>
    outline(document.body, (canvas) => [...(drawn.get(canvas)?.made ?? [])])
      .replaceAll(directory, 'DIR')
      .replaceAll(`process ${process.pid}`, 'process 1')
      .replaceAll(/pass=[\w-]+/g, 'pass=PASS')
      .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')
      .split(/(?<=\n)/);
  const shown = () => `${data() === dataBefore ? '' : `${data()}\n`}${difference(before, lines())}`;
  const press = (key: string) =>
    (document.activeElement ?? document.body).dispatchEvent(
      new window.KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }),
    );
  const click = (selector: string) =>
    (document.querySelector(selector) as unknown as { click(): void } | null)?.click();
  const go = (hash: string) => {
    window.location.hash = hash;
  };
  const seen = async (selector: string) => {
    const timeout = PATIENCE_MS;
    await vi.waitFor(() => expect(document.querySelector(selector), selector).not.toBeNull(), { timeout });
    for (let turns = 0; turns < 20; turns++) await turn();
  };
  const filter = (text: string, selector = '.jobs-page input') => {
    const field = document.querySelector(selector) as unknown as { value: string } & Element;
    field.value = text;
    field.dispatchEvent(new window.Event('input', { bubbles: true }));
    return field;
  };
  const enter = (field: Element) =>
    field.dispatchEvent(new window.KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
  /** What a person does to the rows of the first file. */
  const move = (type: string, of: object = {}) =>
    document.querySelector('.rows')?.dispatchEvent(Object.assign(new window.Event(type, { bubbles: true }), of));
  const scrollTo = (scrollTop: number) => {
    Object.assign(document.querySelector('.rows') ?? {}, { scrollTop });
    // The list takes its place from the first one.
    move('scroll');
    move('scroll');
  };
  const choose = (selector: string, place: number, value: string) => {
    const field = document.querySelectorAll(selector)[place];
    for (const type of ['input', 'change'])
      Object.assign(field ?? {}, { value }) && field?.dispatchEvent(new window.Event(type, { bubbles: true }));
  };
  const steps: readonly (readonly [title: string, act: () => unknown])[] = [
    ['the jobs', () => {}],
    ['the second job has the focus', () => [press('j'), press('j')]],
    ['the list of keys', () => press('?')],
    ['no list of keys', () => click('.key-list .icon-button')],
    ['jobs by number', () => click('.job-job button')],
    ['canceled jobs alone', () => click('.chip.canceled')],
    [
      'a live file',
      async () => {
        press('/');
        await seen('.jobs-page input:focus');
        enter(filter('nowhere'));
        await seen('.jobs-page:not(:has(.job-row))');
        filter('');
        await seen('.job-row');
        expect(window.location.hash, 'Enter was for no job').toBe('');
        enter(filter(SETTLED));
        await seen('.job-page');
        expect(window.location.hash).toBe(`#/job/${SETTLED}/live`);
        go('#/');
        await seen('.jobs-page input');
        expect(document.querySelector('.jobs-page input')).toMatchObject({ value: '' });
        go(`#/job/${FAILING}/live?file=${TASK}/stdout`);
      },
    ],
    ['the wheel turns back', () => [move('wheel', { deltaY: -1 }), scrollTo(0)]],
    ['the wheel turns on to the end', () => [move('wheel', { deltaY: 1 }), scrollTo(9_999)]],
    [
      'a finger moves back',
      () => [5, 10].map((clientY) => move(`touch${clientY === 5 ? 'start' : 'move'}`, { touches: [{ clientY }] })),
    ],
    ['a finger moves on', () => [move('touchmove', { touches: [{ clientY: 5 }] }), scrollTo(9_999)]],
    ['a page on', () => [press('PageUp'), press('PageDown'), scrollTo(9_999)]],
    // At last: what leads on to the end would follow for a moment.
    ['a page back', () => press('PageUp')],
    ['its next error', () => press('e')],
    ['its numbers', () => press('p')],
    ['its numbers over another column', () => [choose('.plot-bar select', 1, '2'), click('.plot-bar .check input')]],
    ['a search', () => press('/')],
    ['no search, after a letter in it', () => [press('w'), press('Escape')]],
    ['the results', () => go(`#/job/${FAILING}/results`)],
    ['a CSV file', () => go(`#/job/${FAILING}/results?name=/${TASK}/t.csv`)],
    ['its table', () => click('.result .notice .button')],
    ['its table by value', () => click('.result th:last-child button')],
    ['a binary result', () => go(`#/job/${FAILING}/results?name=/${TASK}/a.dat`)],
    [
      'a canceled job',
      () => [writeProgress(written, `old\n${'.'.repeat(5_000)}\rstep 1 of 4\n`), go('#/job/504/live')],
    ],
    ['its progress', () => writeProgress(written, 'step 3 of 4\n')],
    ['its progress is emptied', () => writeProgress(written, '')],
    [
      'its progress stays empty',
      () => {
        now += 15_001;
      },
    ],
    [
      'its progress has no value',
      () => {
        now = NOW;
        writeProgress(written, 'done\n');
      },
    ],
    ['a job that is not there', () => go('#/job/999/live')],
    ['the service', () => go('#/service')],
    ['two files', () => go(`#/job/${FAILING}/live?file=${TASK}/stdout&file=${TASK}/stderr`)],
    [
      'another file alone',
      async () => {
        // A click on the number of a line, and another one with Shift, make a link to both and what is between.
        const pane = (place: number) => document.querySelectorAll('.pane')[place];
        const number = (line: number) => pane(0)?.querySelectorAll('.number')[line];
        const clickNumber = (line: number, shiftKey: boolean) =>
          number(line)?.dispatchEvent(new window.MouseEvent('click', { bubbles: true, shiftKey }));
        const link = (lines: string) =>
          `#/job/${FAILING}/live?file=${TASK}%2Fstdout%40${lines}%3Ag3&file=${TASK}%2Fstderr`;
        clickNumber(1, false);
        expect(window.location.hash).toBe(link('7'));
        clickNumber(0, true);
        expect(window.location.hash).toBe(link('0-7'));
        // A task is folded, and unfolded.
        click('.task-row .fold');
        await seen('.task-row [aria-expanded="false"]');
        click('.task-row .fold');
        await seen('.task-list:not(:has([aria-expanded="false"]))');
        press(']');
        press(']');
      },
    ],
    ['it grows', () => write(written, 'stderr', 'fatal\u001b[2J: two\nmore\n')],
    ['a former generation', () => go(`#/job/${FAILING}/live?file=${TASK}/stdout:g2`)],
    [
      'a result on its way',
      async () => {
        go(`#/job/${FAILING}/results?name=/${TASK}/b.dat`);
        // What is requested again for the new pass shows the size.
        await seen('.results:has(.result) .entry-row.open');
        arrive(written, 1_024);
      },
    ],
    [
      'more of it',
      () => {
        trees = asked.filter(isTree).length;
        arrive(written, 2_048);
      },
    ],
    ['yet more of it', () => arrive(written, 3_072)],
    [
      'a job of another machine',
      () => {
        expect(trees).toBeGreaterThan(0);
        expect(asked.filter(isTree), 'bytes that arrive do not request the tree again').toHaveLength(trees);
        go(`#/job/${SEARCHED}/live`);
      },
    ],
    ['a page that nothing is at', () => go('#/nothing')],
    ['a search that is no regular expression', () => go('#/search?text=(&regex=1')],
    [
      'agents by their last heartbeat',
      async () => {
        go('#/service');
        await seen('.agent-seen button');
        click('.agent-seen button');
      },
    ],
    ['a picture', () => go(`#/job/${FAILING}/results?name=/${TASK}/p.png`)],
    ['a document', () => go(`#/job/${FAILING}/results?name=/${TASK}/p.pdf`)],
    ['a result that is a live file', () => go(`#/job/${FAILING}/results?name=/${TASK}/h.txt`)],
    ['a result that is not listed', () => go(`#/job/${FAILING}/results?name=/${TASK}/none`)],
    ['many tasks', () => [addTasks(written), go(`#/job/${SETTLED}/live`)]],
    ['one of them is unfolded', () => click('.task-row .fold')],
    ['their empty files', () => click('.task-filter [type="checkbox"]')],
    ['tasks by number', () => click('.task-task button')],
    ['tasks of one state', () => click('.task-filter .chip')],
    ['tasks that match', () => [click('.task-filter .chip'), filter('9113', '.task-filter input')]],
    ['no task that matches', () => filter('none', '.task-filter input')],
    [
      'errors of all jobs',
      async () => {
        go('#/search');
        await seen('.found-errors .button');
        click('.found-errors .button');
      },
    ],
    ['lines of all jobs', () => go('#/search?text=error')],
    [
      'a lost view',
      async () => {
        let release = () => {};
        network.held = new Promise((resolve) => (release = resolve));
        network.answered = undefined;
        click('.found-line');
        go('#/service');
        await vi.waitFor(() => expect(network.answered).toBeDefined(), { timeout: PATIENCE_MS });
        release();
        await network.answered;
        for (let turns = 0; turns < 20; turns++) await turn();
        expect(window.location.hash, 'the reader went elsewhere').toBe('#/service');
        await seen('.service-page');
        go('#/search?text=error');
        const status = () => document.querySelector('.search-page .fine')?.textContent;
        await vi.waitFor(() => expect(status()).toContain(' of 4'), { timeout: PATIENCE_MS });
        network.cut.abort();
      },
    ],
    [
      'it answers an hour later',
      () => {
        now += 3_600_000;
        network.cut = new AbortController();
      },
    ],
    ['a view that is lost again', () => network.cut.abort()],
    [
      'it answers again',
      () => {
        network.cut = new AbortController();
      },
    ],
    [
      'a fleet that cannot be reached',
      () => {
        lost = new JobtailError('fleet', 'connection refused', { hint: 'start it' });
        const isSaid = () => expect(document.documentElement.dataset['stale']).toBe('fleet-lost');
        return vi.waitFor(isSaid, { timeout: PATIENCE_MS });
      },
    ],
    ['a job that is in no copy of the fleet', () => go('#/job/998/live')],
  ];
  const expected = new Map(
    (fs.existsSync(EXPECTED) ? fs.readFileSync(EXPECTED, 'utf8') : '')
      .split(/^== /m)
      .map((part) => [part.slice(0, part.indexOf('\n')), part.slice(part.indexOf('\n') + 1)]),
  );
  let all = '';
  let patienceMs = expected.size > 1 ? PATIENCE_MS : 2_000;
  for (const [title, act] of steps) {
    await act();
    await vi
      .waitFor(() => expect(shown()).toBe(expected.get(title)), { timeout: patienceMs })
      .catch(() => {
        patienceMs = 2_000;
      });
    all += `== ${title}\n${shown()}`;
    before = lines();
    dataBefore = data();
  }
  await expect(all).toMatchFileSnapshot(EXPECTED);
  expect(failures).toEqual([]);
  // A proxy may give the page a path of its own.
  expect(asked.filter((address) => !address.startsWith('api/'))).toEqual([]);
  const unended = [...network.signals].filter(([signal]) => !signal.aborted).map(([, address]) => address);
  // The signal of a proof is a limit of its time.
  const running = unended.filter((address) => !address.startsWith('api/hello'));
  expect(running, 'what the page requests ends with what it is for').toEqual(['api/events?job=998']);
});
