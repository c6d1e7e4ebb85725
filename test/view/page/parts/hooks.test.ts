/** What components show of answers that come late, fail, or are wanted no more; and lists that a reader unfolds. */
import { setImmediate as turn } from 'node:timers/promises';
import { Window } from 'happy-dom';
import { h, render, type VNode } from 'preact';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { sendBy } from '../../../../src/view/page/api.ts';
import { jobSummary, stubPage } from '../../../support/view-models.ts';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
const HOOKS = '../../../../src/view/page/parts/hooks.ts';

interface Shown<T> {
  readonly answer: T;
  readonly problem: Error | undefined;
}

interface Hooks {
  useAnswer<T>(ask: () => Promise<T>, of: readonly unknown[]): Shown<T | undefined>;
  useLines<Line, T>(
    to: string | undefined,
    first: T,
    next: (answer: T, line: Line) => T,
    of?: readonly unknown[],
  ): Shown<T>;
}

const BANNER = '../../../../src/view/page/parts/banner.tsx';
const LIVE = '../../../../src/view/page/live.ts';
const RESULTS = '../../../../src/view/page/results/results-page.tsx';
const CSV = '../../../../src/view/page/results/csv.tsx';
const LIVE_FILES = '../../../../src/view/page/job/live-files.tsx';
const SEARCH = '../../../../src/view/page/jobs/search-page.tsx';
const JOBS = '../../../../src/view/page/jobs/jobs-page.tsx';

let hooks: Hooks;

beforeEach(async () => {
  const window = new Window();
  const { document } = window;
  // Without a layout, all has a size.
  for (const side of ['offsetWidth', 'offsetHeight', 'clientWidth', 'clientHeight'])
    Object.defineProperty(window.HTMLElement.prototype, side, { get: () => 600 });
  stubPage({ document });
  hooks = (await import(HOOKS)) as Hooks;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => void vi.useRealTimers());

/** Renders a component that uses a hook; `props` are what it is called with. */
function rendered<Props extends object, T>(use: (props: Props) => Shown<T>, isDrawn = false) {
  let last: Shown<T> | undefined;
  const Component = (props: Props) => {
    last = use(props);
    return isDrawn ? (last.answer as VNode) : null;
  };
  const place = document.createElement('div');
  const pass = async (ms = 100) => {
    await vi.advanceTimersByTimeAsync(ms);
    for (let turns = 0; turns < 5; turns++) await turn();
  };
  return {
    place,
    pass,
    show: async (props: Props) => {
      render(h(Component, props), place);
      await pass();
    },
    shown: () => [last?.answer, last?.problem?.message],
    end: () => render(null, place),
  };
}

it('an answer that failed is requested again each three seconds, until it comes, and its problem goes', async () => {
  let failures = 2;
  const ask = vi.fn(async (of: string) => {
    if (failures-- > 0) throw new Error('no answer');
    return of;
  });
  const { show, shown, pass, end } = rendered(({ of }: { of: string }) => hooks.useAnswer(() => ask(of), [of]));
  await show({ of: 'one' });
  expect([shown(), ask.mock.calls.length]).toEqual([[undefined, 'no answer'], 1]);
  await pass(3_100);
  expect([shown(), ask.mock.calls.length]).toEqual([[undefined, 'no answer'], 2]);
  await pass(3_100);
  expect([shown(), ask.mock.calls.length]).toEqual([['one', undefined], 3]);
  // What was there stays while the next one fails.
  failures = 1;
  await show({ of: 'two' });
  expect(shown()).toEqual(['one', 'no answer']);
  await show({ of: 'three' });
  expect(shown()).toEqual(['three', undefined]);
  failures = 9;
  await show({ of: 'four' });
  end();
  await pass(30_000);
  expect([ask.mock.calls.length, vi.getTimerCount()]).toEqual([6, 0]);
});

it('one answer is requested at a time, and none for what changed meanwhile', async () => {
  const held: (() => void)[] = [];
  const asked: number[] = [];
  const ask = (of: number) => {
    asked.push(of);
    return new Promise<number>((resolve) => held.push(() => resolve(of)));
  };
  const { show, shown, pass } = rendered(({ of }: { of: number }) => hooks.useAnswer(() => ask(of), [of]));
  for (const of of [1, 2, 3]) await show({ of });
  expect(asked).toEqual([1]);
  held.shift()?.();
  await pass();
  expect([asked, shown()]).toEqual([
    [1, 3],
    [1, undefined],
  ]);
  held.shift()?.();
  await pass();
  expect(shown()).toEqual([3, undefined]);
});

it('lines add up as they come; a failure of theirs is shown until they are requested again', async () => {
  const signals: (AbortSignal | null)[] = [];
  let answer = () => Promise.resolve(new Response('1\n2\n'));
  sendBy((_, signal) => {
    signals.push(signal);
    return answer();
  });
  const use = ({ to, times = 0 }: { to?: string; times?: number }) =>
    hooks.useLines(to, 0, (sum, line: number) => sum + line, [times]);
  const { show, shown, pass, end } = rendered(use);
  await show({});
  expect([shown(), signals]).toEqual([[0, undefined], []]);
  await show({ to: 'api/a' });
  expect(shown()).toEqual([3, undefined]);
  answer = async () => new Response('{"error":{"message":"busy"}}', { status: 429 });
  await show({ to: 'api/a', times: 1 });
  expect(shown()).toEqual([3, 'busy']);
  // A busy view names a pause, after which it is asked again.
  const refused = new Response('{"error":{"message":"busy"}}', { status: 429, headers: { 'retry-after': '1' } });
  const answers = [refused, new Response('3\n4\n')];
  answer = async () => answers.shift() as Response;
  await show({ to: 'api/a', times: 3 });
  expect(shown()).toEqual([3, 'busy']);
  await pass(1_000);
  expect(shown()).toEqual([7, undefined]);
  let fail = (_: Error) => {};
  answer = () => new Promise((_, reject) => (fail = reject));
  await show({ to: 'api/a', times: 2 });
  expect(shown()).toEqual([7, undefined]);
  // What is wanted no more has no failure.
  answer = async () => new Response('5\n');
  await show({ to: 'api/b', times: 2 });
  fail(new Error('too late'));
  await pass();
  expect(shown()).toEqual([5, undefined]);
  end();
  await pass();
  expect(signals.map((signal) => signal?.aborted)).toEqual(Array(6).fill(true));
});

it('the page is marked as outdated while the view is lost, and no longer', async () => {
  const { Banner } = (await import(BANNER)) as { Banner: () => null };
  const { live } = (await import(LIVE)) as { live: { connection: { value: string } } };
  const { show, pass, place, end } = rendered(() => ({ answer: h(Banner, null), problem: undefined }), true);
  const stale: unknown[] = [];
  for (const connection of ['open', 'lost', 'open', 'refused', 'open']) {
    live.connection.value = connection;
    await (stale.length === 0 ? show({}) : pass());
    stale.push(document.documentElement.dataset['stale']);
    // What counts is not read out each second.
    if (connection === 'lost')
      expect(place.querySelector('[role="status"] [aria-live="off"]')?.className).toBe('since');
  }
  expect(stale).toEqual([undefined, 'view-lost', undefined, 'refused', undefined]);
  end();
});

type Page = (props: object) => null;

/** A component on its own. */
const component = (drawn: Page, props: object) =>
  rendered(() => ({ answer: h(drawn, props), problem: undefined }), true);

it('a directory of results is unfolded and folded by clicks, and more of its entries are requested', async () => {
  const { ResultsPage } = (await import(RESULTS)) as { ResultsPage: Page };
  const file = (name: string) => ({
    ...{ kind: 'file', name, state: 'synced', reason: null, bytes: 1, sha256: null, fetchedAt: 1, live: null },
    preview: 'text',
  });
  const folder = { kind: 'directory', name: '/a/', task: null, files: 1, bytes: 1, states: {} };
  const levels = new Map<string, object>([
    ['under=', { entries: [folder, file('/x')], more: true }],
    ['under=&after=%2Fx', { entries: [file('/y')], more: false }],
    ['under=%2Fa%2F', { entries: [file('/a/b')], more: false }],
  ]);
  sendBy(async (to) => Response.json(levels.get(to.replace(/.*job=5&/, ''))));
  const { show, pass, place, end } = component(ResultsPage, { route: { page: 'results', jobId: '5' } });
  await show({});
  const names = () =>
    [...place.querySelectorAll('.entry-row')].map((row) => row.querySelector('bdi, button')?.textContent);
  const click = async (selector: string) => {
    place.querySelector<HTMLElement>(selector)?.click();
    await pass();
  };
  expect(names()).toEqual(['/a/', '/x', 'More']);
  await click('[aria-expanded="false"]');
  expect(names()).toEqual(['/a/', 'b', '/x', 'More']);
  await click('[aria-expanded="true"]');
  expect(names()).toEqual(['/a/', '/x', 'More']);
  await click('button.button');
  expect(names()).toEqual(['/a/', '/x', '/y']);
  end();
});

it('a link to a generation of a file that is not there shows why, until the file is there', async () => {
  const { LiveFiles } = (await import(LIVE_FILES)) as { LiveFiles: Page };
  sendBy(async () => new Response('{"error":{"message":"there is no live file of this name"}}', { status: 404 }));
  const files = [{ taskId: '9', file: 'stdout', version: 'g2' }];
  const { show, pass, place, end } = component(LiveFiles, { route: { page: 'live', jobId: '5', files } });
  await show({});
  await pass();
  expect(place.querySelector('.panes')?.textContent).toContain('there is no live file of this name');
  end();
});

it('the thumbnail of a picture is that of its last fetch', async () => {
  const { ResultsPage } = (await import(RESULTS)) as { ResultsPage: Page };
  const { live } = (await import(LIVE)) as { live: { details: { value: ReadonlyMap<string, object> } } };
  const picture = { kind: 'file', name: '/a.png', state: 'synced', reason: null, bytes: 1, sha256: null, live: null };
  let fetchedAt = 0;
  sendBy(async (to) => {
    const passed = new URLSearchParams(to.split('?')[1]).get('to');
    return Response.json(
      passed === null
        ? { entries: [{ ...picture, fetchedAt, preview: 'image' }], more: false }
        : { address: `api/${passed}&pass=x` },
    );
  });
  const { show, pass, place, end } = component(ResultsPage, { route: { page: 'results', jobId: '5' } });
  const shown = new Set<string | null | undefined>();
  for (fetchedAt = 1; fetchedAt <= 2; fetchedAt++) {
    const results = { arriving: [], lastSync: null, listed: 1, synced: fetchedAt, failed: 0, bytes: fetchedAt };
    live.details.value = new Map([['5', { ...jobSummary('5', {}), hasResults: true, results }]]);
    await show({});
    await pass();
    shown.add(place.querySelector('.thumbnail')?.getAttribute('src'));
  }
  expect([...shown]).toEqual([1, 2].map((at) => expect.stringMatching(`^api/preview.*a.png.*=${at}&pass=x$`)));
  end();
});

it('a search over all jobs is made again by another click on its button', async () => {
  const { SearchPage } = (await import(SEARCH)) as { SearchPage: Page };
  vi.stubGlobal('location', { hash: '#/search?text=abc' });
  const asked: string[] = [];
  sendBy(async (to) => {
    asked.push(to);
    return new Response(`${JSON.stringify({ done: true, files: asked.length })}\n`);
  });
  const { show, pass, place, end } = component(SearchPage, { route: { page: 'search', text: 'abc', regex: false } });
  await show({});
  const submit = async () => {
    const { Event } = place.ownerDocument.defaultView as unknown as typeof globalThis;
    place.querySelector('form')?.dispatchEvent(new Event('submit', { cancelable: true }));
    await pass();
  };
  await submit();
  expect([asked, place.querySelector('.fine')?.textContent]).toEqual([
    ['api/find?text=abc', 'api/find?text=abc'],
    '0 lines in 0 files of 2',
  ]);
  const field = place.querySelector<HTMLInputElement>('input[type="search"]') as HTMLInputElement;
  field.value = 'other';
  await submit();
  expect([asked.length, location.hash]).toEqual([2, '#/search?text=other']);
  end();
});

it('a large CSV file is a table of its first MiB, without the row that is cut', async () => {
  const { Csv } = (await import(CSV)) as { Csv: Page };
  const content = Buffer.from(`name,n\n${`${'x'.repeat(1_021)},1\n`.repeat(1_100)}`);
  sendBy(async (to) => {
    const query = new URLSearchParams(to.split('?')[1]);
    const at = Number(query.get('at'));
    const headers = { 'view-start': String(at), 'view-bytes': String(content.length) };
    return new Response(content.subarray(at, at + Number(query.get('bytes'))), { headers });
  });
  const { show, place, end } = component(Csv, { content: {}, bytes: content.length, onText: () => {} });
  await show({});
  expect(place.querySelector('.notice')?.textContent).toMatch(/^1,023 rows of the first 1.0 MiB/);
  end();
});

it('of 500 jobs, only those on the screen are drawn, what failed first', async () => {
  const { JobsPage } = (await import(JOBS)) as { JobsPage: Page };
  const { live } = (await import(LIVE)) as { live: { jobs: { value: ReadonlyMap<string, object> } } };
  const jobs = Array.from({ length: 500 }, (_, at) =>
    jobSummary(`${at}`, { jobState: at === 3 ? 'Failed' : 'Running' }),
  );
  live.jobs.value = new Map(jobs.map((job) => [job.jobId, job]));
  const { show, place, end } = component(JobsPage, {});
  await show({});
  const rows = [...place.querySelectorAll('.job-row')];
  expect(rows[0]?.textContent).toMatch(/^3/);
  expect(rows.length).toBeLessThan(30);
  expect([...place.querySelectorAll('.chip')].map((chip) => chip.textContent)).toEqual(['1 failed', '499 running']);
  end();
});
