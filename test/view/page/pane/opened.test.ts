/** An opened file and what can be done with it, without a document, against a real view. */
import { getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { ask, pause, sendBy } from '../../../../src/view/page/api.ts';
import type { OpenFile } from '../../../../src/view/page/file/open-file.ts';
import type { Search } from '../../../../src/view/page/file/search.ts';
import { until } from '../../../support/e2e-until.ts';
import { JOB, TASK, ViewPlace } from '../../../support/view-place.ts';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
const OPENED = '../../../../src/view/page/pane/opened.ts';

interface Opened {
  readonly file: OpenFile;
  readonly search: Search;
  readonly kinds: { readonly value: readonly unknown[] | undefined };
  readonly selection: { readonly value: { readonly from: number } | undefined };
  readonly notice: { readonly value: string };
  start(): () => void;
  openSearch(): void;
  closeSearch(): void;
  togglePlot(): void;
  select(start: number, isExtended: boolean): void;
  step(isBack: boolean): Promise<void>;
  goTo(typed: string): Promise<boolean | undefined>;
  copy(): Promise<void>;
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.stubGlobal('requestAnimationFrame', (draw: () => void) => setImmediate(draw));
  vi.stubGlobal('cancelAnimationFrame', clearImmediate);
});
afterEach(async () => {
  await vi.advanceTimersByTimeAsync(200);
  await turn();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const LINE = 'a line\n';

async function opened(content: string) {
  const place = await ViewPlace.withJob(content);
  const base = `http://127.0.0.1:${place.view.port}/`;
  const authorization = `Bearer ${place.token}`;
  const asked: string[] = [];
  const signals: (AbortSignal | null)[] = [];
  const held = new Map<string, Promise<void>>();
  sendBy(async (to, signal) => {
    asked.push(to);
    signals.push(signal);
    const response = await fetch(new URL(to, base), { headers: { authorization }, signal });
    await [...held].find(([part]) => to.includes(part))?.[1];
    signal?.throwIfAborted();
    return response;
  });
  const { Opened } = (await import(OPENED)) as { Opened: new (content: object, opening: object) => Opened };
  const pane = new Opened({ job: JOB, task: TASK, file: 'stdout' }, { follows: true });
  const stop = pane.start();
  onTestFinished(stop);
  await until('its rows', () => pane.file.isLoaded);
  return {
    ...{ pane, file: pane.file, search: pane.search, stop },
    running: () => signals.filter((signal) => signal?.aborted === false).length,
    askedFor: (part: string) => asked.filter((to) => to.includes(part)).length,
    /** Holds the responses to requests whose address has a part. */
    hold(part: string): () => void {
      let release = () => {};
      held.set(part, new Promise((resolve) => (release = resolve)));
      return () => {
        held.delete(part);
        release();
      };
    },
    async rewrite(text: string, version = 'g2') {
      place.rewrite('stdout', text);
      pane.file.announce({ version, bytes: Buffer.byteLength(text) });
      await until('the new rows', () => pane.file.isLoaded && pane.file.condition.value.version === version);
    },
    async searchFor(text: string) {
      pane.openSearch();
      pane.search.start({ text, matchesCase: true, regex: false }, 0);
      await vi.advanceTimersByTimeAsync(150);
    },
  };
}

const isDone = (pane: Opened) => until('the search', () => pane.search.found.value?.isDone);

it('a search that is closed before its end begins again when it is opened, and one that ended does not', async () => {
  const { pane, search, askedFor, hold, searchFor, running, stop } = await opened('error 1\nerror 2\n');
  const release = hold('api/search');
  await searchFor('error');
  pane.closeSearch();
  release();
  await turn();
  expect(search.found.value?.isDone).toBe(false);
  pane.openSearch();
  await vi.advanceTimersByTimeAsync(150);
  await isDone(pane);
  expect([search.found.value?.count, askedFor('api/search')]).toEqual([2, 2]);
  pane.closeSearch();
  pane.openSearch();
  expect(search.found.value?.count).toBe(2);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(askedFor('api/search')).toBe(2);
  // It ends with its pane.
  await searchFor('1');
  expect(running()).toBeGreaterThan(0);
  stop();
  expect(running()).toBe(0);
});

it('what was found, selected and plotted in a file is forgotten when it is rewritten, whether the search is open', async () => {
  const { pane, search, file, rewrite, searchFor } = await opened('x=1\nx=2\nerror 1\n');
  await searchFor('error');
  await isDone(pane);
  for (const [isOpen, version] of [
    [false, 'g2'],
    [true, 'g3'],
  ] as const) {
    if (isOpen) pane.openSearch();
    else pane.closeSearch();
    pane.togglePlot();
    pane.select(0, false);
    file.follow();
    expect([pane.kinds.value?.length, pane.selection.value?.from]).toEqual([1, 0]);
    await rewrite(`${LINE}x=1\nx=2\n${LINE}error 2\n`, version);
    expect([pane.kinds.value, pane.selection.value]).toEqual([undefined, undefined]);
    if (isOpen) {
      await vi.advanceTimersByTimeAsync(150);
      await isDone(pane);
    } else {
      expect([search.found.value, search.current.value]).toEqual([undefined, undefined]);
      await pane.step(false);
    }
    expect(search.current.value).toEqual([22, 5]);
  }
});

it('the line that a reader goes to gives way to what the reader, or the file, does before its place comes', async () => {
  const { pane, file, hold, rewrite } = await opened(LINE.repeat(100));
  for (const [after, isMoved] of [
    [() => pane.goTo('3'), true],
    [() => file.follow(), true],
    [() => file.jumpToEnd(), true],
    [() => rewrite(LINE.repeat(200)), true],
    [() => {}, false],
  ] as const) {
    file.follow();
    const release = hold('line=49');
    const first = pane.goTo('50');
    await after();
    const { value } = pane.selection;
    release();
    expect(await first).toBe(isMoved ? undefined : true);
    expect(pane.selection.value?.from).toBe(isMoved ? value?.from : 49 * LINE.length);
  }
  expect(await pane.goTo('201')).toBe(false);
});

it('what became of a copy is shown for two seconds, also after another copy', async () => {
  const { pane } = await opened(LINE.repeat(3));
  const copied: string[] = [];
  vi.stubGlobal('navigator', { clipboard: { writeText: async (text: string) => copied.push(text) } });
  for (const [from, to, notice] of [
    [0, 0, '1 line copied'],
    [7, 14, '2 lines copied'],
  ] as const) {
    pane.select(from, false);
    pane.select(to, true);
    await pane.copy();
    expect(pane.notice.value).toBe(notice);
    await vi.advanceTimersByTimeAsync(1_999);
    expect(pane.notice.value).toBe(notice);
  }
  await vi.advanceTimersByTimeAsync(1);
  expect([pane.notice.value, copied]).toEqual(['', [LINE, LINE.repeat(2)]]);
  vi.stubGlobal('navigator', { clipboard: { writeText: () => Promise.reject(new Error('not allowed')) } });
  await pane.copy();
  expect(pane.notice.value).toBe('this browser refuses to copy');
});

it('a pause of the page ends after its time, or when its signal fires, and leaves nothing behind', async () => {
  const over = new AbortController();
  const { signal } = over;
  const ended = pause(1_000, signal);
  await vi.advanceTimersByTimeAsync(1_000);
  await ended;
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  const aborted = pause(1_000, signal);
  over.abort();
  await aborted;
  await pause(1_000, signal);
  expect([vi.getTimerCount(), getEventListeners(signal, 'abort')]).toEqual([0, []]);
});

it('a refusal has the words of the server, and its pause; without words, its status', async () => {
  const refused = (body: string, headers = {}) => {
    sendBy(async () => new Response(body, { status: 429, headers }));
    return ask('api/x').catch((error: unknown) => error);
  };
  const error = { message: 'busy', hint: 'wait', version: 'g2' };
  expect(await refused(JSON.stringify({ error }), { 'retry-after': '2' })).toMatchObject({
    ...{ ...error, status: 429, retryAfterMs: 2_000 },
  });
  expect(await refused('<html>')).toMatchObject({ message: 'the server answered with 429', retryAfterMs: undefined });
});
