/** The session of the page and its stream of events, without a document, against a real view. */
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { JobId } from '../../../src/job.ts';
import type { PageSession } from '../../../src/view/contract/addresses.ts';
import type { FileLength, StreamTopics } from '../../../src/view/contract/events.ts';
import { tokenFileOf } from '../../../src/view/token.ts';
import { until } from '../../support/e2e-until.ts';
import { JOB, STDOUT, TASK, ViewPlace } from '../../support/view-place.ts';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
const API = '../../../src/view/page/api.ts';
const SESSION = '../../../src/view/page/session.ts';
const LIVE = '../../../src/view/page/live.ts';
const LINES = `api/lines?${STDOUT}`;

interface Session {
  canGoOn(): boolean;
  onEntry(entered: () => void): void;
  request(to: string, signal: AbortSignal | null): Promise<Response>;
}

interface Live {
  readonly connection: { readonly value: string; subscribe(seen: (state: string) => void): void };
  readonly condition: { readonly value: { readonly problem?: { readonly message: string } } };
  readonly missing: { readonly value: ReadonlySet<string> };
  readonly now: { readonly value: number };
  readonly details: { readonly value: ReadonlyMap<string, unknown> };
  start(): void;
  subscribe(topics: StreamTopics): void;
  watchFile(file: string, reported: (length: FileLength) => void): () => void;
}

async function browser(settings: Parameters<typeof ViewPlace.serve>[0] = {}) {
  const place = await ViewPlace.withJob('of the job\n', settings);
  const { port } = place.view;
  const stored = new Map<string, string>();
  const asked: string[] = [];
  const listeners: [type: string, listener: (event: object) => void][] = [];
  const addEventListener = (...listener: (typeof listeners)[number]) => void listeners.push(listener);
  const location = { pathname: '/', hash: '#/service', search: '', reload: vi.fn() };
  const document = { hidden: false, addEventListener };
  const replaceState = vi.fn();
  const open = globalThis.fetch;
  const network = { cut: new AbortController() };
  const globals = {
    ...{ location, document, addEventListener, history: { replaceState } },
    localStorage: {
      getItem: (name: string) => stored.get(name) ?? null,
      setItem: (name: string, value: string) => void stored.set(name, value),
    },
    fetch: (to: string, { signal, ...options }: RequestInit) => {
      asked.push(to);
      // No connection outlives a restart.
      const headers = { ...options.headers, connection: 'close' };
      const signals = [network.cut.signal, ...(signal == null ? [] : [signal])];
      return open(`http://127.0.0.1:${port}/${to}`, { ...options, headers, signal: AbortSignal.any(signals) });
    },
  };
  for (const [name, value] of Object.entries(globals)) vi.stubGlobal(name, value);
  const every = vi.spyOn(globalThis, 'setInterval');
  const fire = (type: string, event: object = {}) => {
    for (const [name, listener] of listeners) if (name === type) listener(event);
  };
  onTestFinished(() => {
    document.hidden = true;
    fire('visibilitychange');
    for (const { value } of every.mock.results) clearInterval(value as NodeJS.Timeout);
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
  });
  return {
    ...{ place, asked, location, document, network, replaceState, fire, stored },
    askedFor: (part: string) => asked.filter((to) => to.includes(part)).length,
    /** A tab of this browser, which opens a link or an address. */
    async tab(link = '') {
      vi.resetModules();
      location.search = link === '' ? '' : new URL(link).search;
      const session = (await import(SESSION)) as Session;
      const { sendBy } = (await import(API)) as { sendBy(how: Session['request']): void };
      const { live } = (await import(LIVE)) as { live: Live };
      sendBy(session.request);
      const status = async () => (await session.request(LINES, null)).status;
      const refusal = async () => JSON.stringify(await (await session.request(LINES, null)).json());
      return { ...session, live, status, refusal };
    },
    /** Another tab was let in. */
    async enterElsewhere() {
      const authorization = `Ticket ${new URL(place.view.link()).searchParams.get('ticket')}`;
      const { text } = await place.ask('/api/session', { headers: { authorization } });
      const { access } = JSON.parse(text) as PageSession;
      stored.set('jobtail-session /', access);
      fire('storage', { key: 'jobtail-session /', newValue: access });
    },
    /** The view again, where it was. */
    async startAgain(program = '1.2.3') {
      await place.view.close();
      Object.assign(place.settings, { listen: { host: '127.0.0.1', port }, program });
      await place.start();
    },
  };
}

it('a page goes on after each restart of the view, by one proof for all of its requests', async () => {
  const { place, askedFor, replaceState, stored, tab, startAgain } = await browser();
  const { status, canGoOn } = await tab(place.view.link());
  expect([await status(), canGoOn()]).toEqual([200, true]);
  expect(replaceState.mock.calls).toEqual([[null, '', '/#/service']]);
  // A bookmark in another tab of this browser.
  expect(await (await tab()).status()).toBe(200);
  const seen = new Set(stored.values());
  for (let restarts = 1; restarts <= 2; restarts++) {
    await startAgain();
    expect(await Promise.all([status(), status(), status()])).toEqual([200, 200, 200]);
    expect(askedFor('api/hello')).toBe(restarts);
    expect(await status()).toBe(200);
    for (const value of stored.values()) seen.add(value);
    expect([stored.size, seen.size]).toEqual([1, restarts + 1]);
  }
});

it('a page with a link that was used shows that until another tab is let in, and then why it lost its own access', async () => {
  const { place, fire, tab, enterElsewhere, startAgain } = await browser();
  const link = place.view.link();
  const ticket = `Ticket ${new URL(link).searchParams.get('ticket')}`;
  await place.ask('/api/session', { headers: { authorization: ticket } });
  const { status, refusal, canGoOn, onEntry } = await tab(link);
  const entered = vi.fn();
  onEntry(entered);
  expect([await refusal(), canGoOn()]).toEqual([expect.stringContaining('not valid any more'), false]);
  // What else is stored under this origin, and a session that is removed, let nobody in.
  for (const [key, newValue] of Object.entries({ other: 'x', 'jobtail-session /': null }))
    fire('storage', { key, newValue });
  await enterElsewhere();
  await until('the entry', () => entered.mock.calls.length === 1);
  expect([await status(), canGoOn()]).toEqual([200, true]);
  // Another token: what answers is not the view of this session.
  fs.rmSync(tokenFileOf(place.settings));
  await startAgain();
  expect(await refusal()).toContain('no session of this start');
  await enterElsewhere();
  await until('the entry', () => entered.mock.calls.length >= 2);
  expect([await status(), entered.mock.calls.length]).toEqual([200, 2]);
});

it('a page opens the stream of what it shows: again when that changes, while it is seen, and after each loss', async () => {
  const { place, asked, askedFor, document, network, location, fire, tab, startAgain } = await browser();
  const { live } = await tab(place.view.link());
  const states: string[] = [];
  live.connection.subscribe((state) => void states.push(state));
  live.subscribe({ job: ['999'] });
  live.start();
  const isOpen = () => until('the stream', () => live.connection.value === 'open');
  const lastStream = () => asked.filter((to) => to.startsWith('api/events')).at(-1) ?? '';
  await until('what is missing', () => live.missing.value.has('999'));
  place.addJob('999' as JobId);
  await until('what was missing', () => live.details.value.has('999') && !live.missing.value.has('999'));
  // Both listeners of a file share the stream, and the last one ends it.
  const lengths: [number, number][] = [];
  const file = `${JOB}/${TASK}/stdout`;
  const stops = [0, 1].map((each) => live.watchFile(file, ({ bytes }) => lengths.push([each, bytes])));
  await until('its length', () => lengths.length === 2);
  expect(lastStream()).toContain(`file=${encodeURIComponent(file)}`);
  const opened = askedFor('api/events');
  stops[0]?.();
  place.write('stdout', 'more of the job\n');
  await until('its length', () => lengths.length === 3);
  expect([lengths[2], askedFor('api/events')]).toEqual([[1, 16], opened]);
  stops[1]?.();
  await until('the stream without it', () => !lastStream().includes('file='));
  // A hidden tab has no stream.
  document.hidden = true;
  fire('visibilitychange');
  const before = askedFor('api/events');
  live.watchFile(file, () => {})();
  document.hidden = false;
  fire('visibilitychange');
  await isOpen();
  expect(askedFor('api/events')).toBe(before + 1);
  expect(states).toEqual(['connecting', 'open']);
  // The pauses begin anew with each stream that opens.
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const streamsBefore = askedFor('api/events');
  for (let losses = 0; losses < 2; losses++) {
    network.cut.abort();
    await until('two attempts', () => timers.mock.calls.filter(([, ms]) => ms === 500).length > losses);
    expect(live.condition.value.problem?.message).toBe('The view does not answer.');
    network.cut = new AbortController();
    await isOpen();
  }
  // A stream that is refused, as one of too many.
  live.subscribe({ job: [...'123456789'] });
  await until('the refusal', () => live.connection.value === 'lost');
  expect(live.condition.value.problem?.message).toBe('The view refuses: at most 8 of job.');
  live.subscribe({ jobs: '1' });
  await isOpen();
  // A stream in which nothing comes any more: each piece of it begins the time anew.
  const silences = () => timers.mock.calls.filter(([, ms]) => ms === 40_000);
  await until('a piece', () => silences().length > askedFor('api/events') - streamsBefore);
  const streams = askedFor('api/events');
  silences().at(-1)?.[0]();
  await until('another stream', () => askedFor('api/events') > streams);
  await isOpen();
  expect(states.slice(-2)).toEqual(['lost', 'open']);
  expect(location.reload).not.toHaveBeenCalled();
  await startAgain('1.2.4');
  await until('the page of the other version', () => location.reload.mock.calls.length === 1);
});

it('a page shows what listens in the place of the view nothing that opens it, and goes on with the view', async () => {
  const { place, tab } = await browser();
  const { live, status } = await tab(place.view.link());
  live.subscribe({ jobs: '1' });
  live.start();
  const isOpen = () => until('the stream', () => live.connection.value === 'open');
  await isOpen();
  const at = { host: '127.0.0.1', port: place.view.port };
  await place.view.close();
  const shown = new Set<string>();
  const thief = http.createServer(({ url = '', headers: { authorization } }, response) => {
    if (authorization !== undefined) shown.add(authorization);
    const isHello = url.startsWith('/api/hello');
    const body = isHello ? { start: 'x'.repeat(22), proof: 'x'.repeat(43) } : ['hello', { program: 'x', now: 1 }];
    response.writeHead(200).end(`${JSON.stringify(body)}\n`);
  });
  await once(thief.listen(at), 'listening');
  await until('the refusal', () => live.condition.value.problem?.message.includes('has not proven to be the view'));
  await status();
  thief.close();
  await once(thief, 'close');
  Object.assign(place.settings, { listen: at });
  await place.start();
  await isOpen();
  expect([shown.size, await status()]).toEqual([1, 200]);
  for (const authorization of shown)
    expect((await place.ask(`/${LINES}`, { headers: { authorization } })).status).toBe(401);
});

it('a page has the time of the view, whatever the clock of the browser', async () => {
  const { place, tab } = await browser();
  const hour = 60 * 60_000;
  const time = Date.now;
  // The view is in this process, too.
  vi.spyOn(Date, 'now').mockImplementation(
    () => time() - (new Error().stack?.includes('/view/page/live.ts') ? hour : 0),
  );
  const { live } = await tab(place.view.link());
  live.subscribe({ jobs: '1' });
  live.start();
  await until('the stream', () => live.connection.value === 'open');
  const first = live.now.value;
  await until('the next second', () => live.now.value !== first);
  expect(Math.abs(live.now.value - time())).toBeLessThan(hour / 2);
});
