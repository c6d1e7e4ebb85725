/** Against a server in memory that answers as the real one does. */
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { effect, signal } from '@preact/signals';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { sendBy } from '../../../../src/view/page/api.ts';
import { type Found, Search } from '../../../../src/view/page/file/search.ts';
import { until } from '../../../support/e2e-until.ts';

let content = '';
let server: http.Server;
/** Where the real server would find a regular expression. */
let places: [number, number][] | undefined;
/** How many of all that it finds a server lists. */
let maxListed: number;
/** Requests that are refused first. */
let refusals = 0;
/** Holds the request for the next match alone. */
let held = Promise.resolve();
/** Called before an answer is sent, as it was made. */
let onAnswer = () => {};
let asked = 0;

/** All places of a text, as the real server tells them. */
async function answer({ url = '' }: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  const query = new URL(url, 'http://page').searchParams;
  const text = query.get('text') ?? '';
  const from = Number(query.get('from') ?? 0);
  asked++;
  if (refusals-- > 0) {
    response.writeHead(429, { 'retry-after': '0.01' }).end('{"error":{"message":"busy"}}');
    return;
  }
  if (query.has('max')) await held;
  const at: [number, number][] = [];
  for (let byte = content.indexOf(text, from); byte >= 0; byte = content.indexOf(text, byte + text.length))
    at.push([byte, text.length]);
  if (places !== undefined) at.splice(0, at.length, ...places);
  const lines: object[] = at.length === 0 ? [] : [{ at: at.slice(0, maxListed) }];
  if (!query.has('max')) lines.push({ searched: content.length, of: content.length, count: at.length });
  lines.push({ done: true, count: at.length, version: 'one' });
  onAnswer();
  response.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

beforeEach(async () => {
  places = undefined;
  maxListed = Number.POSITIVE_INFINITY;
  refusals = 0;
  held = Promise.resolve();
  onAnswer = () => {};
  asked = 0;
  server = http.createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  // A page's addresses are relative to it.
  sendBy((to, signal) => fetch(new URL(to, base), { signal }));
});

afterEach(() => {
  vi.restoreAllMocks();
  server.close();
  server.closeAllConnections();
});

async function searched(text: string, near: number, regex = false, isBack = false): Promise<Search> {
  const search = new Search(() => ({ job: '1', task: '2', file: 'stdout' }));
  search.start({ text, matchesCase: true, regex }, near, isBack);
  await until('the search', () => search.found.value?.isDone);
  return search;
}

it('the search in a file counts everything, and shows the first match from what is on the screen on', async () => {
  content = 'error ... error ... error';
  const search = await searched('error', 5);
  expect(search.found.value?.count).toBe(3);
  expect([search.current.value, search.place]).toEqual([[10, 5], 1]);
  const shown: unknown[] = [];
  for (const isBack of [false, false, true]) {
    await search.step(isBack, 0);
    shown.push(search.current.value?.[0]);
  }
  expect(shown).toEqual([20, 0, 20]);
});

it('the search in a file goes on to a match that was not reported, and back to one that was', async () => {
  content = 'error ... error ... error';
  const search = await searched('error', 0);
  // More were found than reported: only the first one is known here.
  places = [[0, 5]];
  const capped = await searched('error', 0);
  capped.found.value = { ...(search.found.value as Found), count: 3 };
  places = undefined;
  await capped.step(false, 0);
  expect(capped.current.value).toEqual([10, 5]);
  await capped.step(true, 0);
  expect(capped.current.value).toEqual([0, 5]);
  await Promise.all([capped.step(false, 0), capped.step(false, 0)]);
  expect(capped.current.value).toEqual([20, 5]);
  // A step that waits for another one gives way to the next search.
  let release = () => {};
  held = new Promise((resolve) => (release = resolve));
  const steps = [capped.step(true, 0), capped.step(false, 0), capped.step(true, 0)].map((step) => step.catch(() => {}));
  capped.start({ text: 'none', matchesCase: true, regex: false }, 0);
  release();
  await Promise.all(steps);
  expect(capped.current.value).toBeUndefined();
});

it('the search in a file shows what is next to the screen in either direction, beyond the matches that are listed, too', async () => {
  content = 'error ... error ... error ... error';
  for (const listed of [2, 4]) {
    maxListed = listed;
    const shown: unknown[] = [];
    for (const [near, isBack] of [[21], [15, true], [30, true], [0, true], [36]] as const) {
      const search = await searched('error', near, false, isBack);
      await until('the match', () => search.current.value);
      shown.push(search.current.value?.[0]);
      if (near < 36) continue;
      for (let steps = 0; steps < 4; steps++) {
        await search.step(true, 0);
        shown.push(search.current.value?.[0]);
      }
    }
    expect([listed, shown]).toEqual([listed, [30, 10, 20, 30, 30, 20, 10, 0, 30]]);
  }
});

it('the search in a file that a busy server refuses is asked for again', async () => {
  content = 'error';
  refusals = 2;
  const search = await searched('error', 0);
  expect([search.found.value?.problem, search.found.value?.count, asked]).toEqual([undefined, 1, 3]);
});

it('the search in a file shows the last one where all lie before the screen', async () => {
  content = 'error ... error ...';
  const search = await searched('error', 18);
  expect(search.current.value?.[0]).toBe(10);
  // The first step is requested with the search, and may be answered before it or after it.
  for (const isHeld of [true, false]) {
    let release = () => {};
    if (isHeld) held = new Promise((resolve) => (release = resolve));
    const both = new Search(() => ({ job: '1', task: '2', file: 'stdout' }));
    both.start({ text: 'error', matchesCase: true, regex: false }, 18);
    const stepped = both.step(false, 18);
    if (!isHeld) await stepped;
    await until('the search', () => both.found.value?.isDone);
    release();
    await stepped;
    expect([isHeld, both.current.value?.[0]]).toEqual([isHeld, 10]);
    await both.step(false, 18);
    expect([isHeld, both.current.value?.[0]]).toEqual([isHeld, 0]);
  }
});

it('the search in a file counts what comes, each match once, also one that the end cut', async () => {
  content = 'error ... err';
  const search = await searched('error', 0);
  expect(search.found.value?.count).toBe(1);
  content += 'or ... error';
  search.grow(content.length);
  await until('what came', () => search.found.value?.count === 3);
  content += ' and nothing';
  search.grow(content.length);
  content += ' but an error';
  await until('what came then', () => {
    search.grow(content.length);
    return search.found.value?.count === 4;
  });
});

it('the search in a file that always grows asks for what came once, and for what came meanwhile after that', async () => {
  content = 'error';
  const bytes = signal(content.length);
  const grow = (text: string) => {
    content += text;
    bytes.value = content.length;
  };
  onAnswer = () => grow('. error ');
  const search = await searched('error', 0);
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const gathers = () => timers.mock.calls.filter(([, ms]) => ms === 1_000).length;
  // As the page does.
  const stop = effect(() => {
    if (search.found.value?.isDone === true) search.grow(bytes.value);
  });
  for (let answers = 1; answers < 4; answers++) {
    // More comes before the next request, too.
    grow(' more');
    await until('the answer', () => (search.found.value?.count ?? 0) > answers && gathers() > answers);
    expect([asked, gathers()]).toEqual([answers + 1, answers + 1]);
  }
  stop();
  search.stop();
  for (const byte of [0, 7, 20]) {
    expect([search.current.value?.[0], search.place]).toEqual([byte, [0, 7, 20].indexOf(byte)]);
    await search.step(false, 0);
  }
});

it('the search in a file is for the last text, whatever was typed before and is on its way', async () => {
  content = 'err error';
  const search = new Search(() => ({ job: '1', task: '2', file: 'stdout' }));
  const problems = new Set<string | undefined>();
  const stop = search.found.subscribe((found) => void problems.add(found?.problem));
  const type = (text: string) => search.start({ text, matchesCase: true, regex: false }, 0);
  type('e');
  type('err');
  for (const [next, text, count, byte] of [
    ['error', 'error', 1, 4],
    ['', '', undefined, undefined],
    ['err', 'err', 2, 0],
  ] as const) {
    // It is typed while the text before is answered.
    onAnswer = () => {
      onAnswer = () => {};
      type(next);
    };
    if (asked > 0) type('r');
    await until('the search', () => search.query.value.text === next && search.found.value?.isDone !== false);
    expect([search.query.value.text, search.found.value?.count, search.current.value?.[0]]).toEqual([
      text,
      count,
      byte,
    ]);
    expect(search.place).toBe(byte === undefined ? undefined : 0);
  }
  stop();
  expect([asked, [...problems]]).toEqual([5, [undefined]]);
});

it('the search in a file finds nothing where there is nothing', async () => {
  content = 'all is well';
  const search = await searched('error', 0);
  expect(search.found.value).toMatchObject({ count: 0, isDone: true, problem: undefined });
  await search.step(false, 0);
  expect(search.current.value).toBeUndefined();
});

it.each([
  ['a-b', 'x A-B y', 'A-B'],
  ['$.*+?()[]{}|/\\^', 'x $.*+?()[]{}|/\\^ y', '$.*+?()[]{}|/\\^'],
  ['řeka', 'ŘEKA', 'ŘEKA'],
])('the search in a file marks %j in text that is shown', (text, shown, marked) => {
  const search = new Search(() => ({ job: '1', task: '2', file: 'stdout' }));
  search.query.value = { text, matchesCase: false, regex: false };
  expect(shown.match(search.needleIn({ bytes: Buffer.from(shown), shownFrom: 0 }) ?? /never/)).toEqual([marked]);
});

it('the search in a file marks of a regular expression what the server found in the row, and runs none itself', async () => {
  content = 'step 1\nno (step) 22\n';
  places = [
    [0, 6],
    [11, 8],
  ];
  const search = await searched('(a+)+$', 0, true);
  const row = (start: number, end: number) =>
    search.needleIn({ bytes: Buffer.from(content.slice(start, end)), shownFrom: start });
  expect('step 1'.match(row(0, 7) ?? /never/)).toEqual(['step 1']);
  expect('no (step) 22'.match(row(7, 20) ?? /never/)).toEqual(['step) 22']);
  expect(search.needleIn({ bytes: Buffer.from('step 1'), shownFrom: 20 })).toBeUndefined();
});
