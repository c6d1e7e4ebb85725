/** What components show of answers that come late, fail, or are wanted no more; and lists that a reader unfolds. */
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { Window } from 'happy-dom';
import { h, render, type VNode } from 'preact';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import type { JobSummary } from '../../../../src/view/contract/events.ts';
import { sendBy } from '../../../../src/view/page/api.ts';
import { expectCases } from '../../../support/errors.ts';
import { difference, jobSummary, outline, stubPage } from '../../../support/view-models.ts';

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

const LIVE = '../../../../src/view/page/live.ts';
const CSV = '../../../../src/view/page/results/csv.tsx';
const JOBS = '../../../../src/view/page/jobs/jobs-page.tsx';
/** Those of components.txt. */
const COMPONENTS: Readonly<Record<string, string>> = {
  Banner: '../../../../src/view/page/parts/banner.tsx',
  JobPage: '../../../../src/view/page/job/job-page.tsx',
  JobsPage: JOBS,
  LiveFiles: '../../../../src/view/page/job/live-files.tsx',
  ResultsPage: '../../../../src/view/page/results/results-page.tsx',
  SearchPage: '../../../../src/view/page/jobs/search-page.tsx',
  ServicePage: '../../../../src/view/page/service/service-page.tsx',
};
const NOW = Date.UTC(2026, 10, 22, 7, 35, 45);

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

type Live = Record<string, { value: unknown }>;

const NOTHING_KNOWN = {
  ...{ connection: 'open', agent: undefined, fleet: undefined, jobs: undefined, details: [], missing: [], files: {} },
  ...{ service: undefined, figures: undefined, stateError: null, now: NOW },
};

/** Sets what the page knows: jobs, their details and files by the id of the job. */
function know(live: Live, { jobs, details, missing, files, ...more }: Partial<typeof NOTHING_KNOWN>): void {
  type Job = Partial<JobSummary> & { readonly jobId: string };
  const byId = (all: unknown) => new Map((all as Job[]).map((job) => [job.jobId, jobSummary(job.jobId, job)]));
  const maps = {
    ...(jobs !== undefined && { jobs: byId(jobs) }),
    ...(details !== undefined && { details: byId(details) }),
    ...(missing !== undefined && { missing: new Set(missing) }),
    ...(files !== undefined && { files: new Map(Object.entries(files)) }),
  };
  for (const [name, value] of Object.entries({ ...more, ...maps })) Object.assign(live[name] as object, { value });
}

/** What a component draws, and requests, and what that becomes by each step. */
async function stepsOf(written: string): Promise<string[]> {
  const { live } = (await import(LIVE)) as { live: Live };
  know(live, NOTHING_KNOWN);
  const asked: string[] = [];
  const answers: Record<string, unknown> = {};
  vi.stubGlobal('location', { hash: '', pathname: '/', search: '' });
  sendBy(async (to) => {
    const name = to.replace(/^api\//, '');
    asked.push(name);
    if (name.startsWith('pass?'))
      return Response.json({ address: `api/${new URLSearchParams(name).get('pass?to')}&pass=x` });
    const answer = answers[name];
    if (answer === undefined) return Response.json({ error: { message: `there is no ${name}` } }, { status: 404 });
    return new Response(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  let component: Page = () => null;
  const { show, pass, place, end } = rendered(
    (props: object) => ({ answer: h(component, props), problem: undefined }),
    true,
  );
  const event = (type: string, of: object = {}) =>
    Object.assign(new (document.defaultView as typeof globalThis).Event(type, { bubbles: true, cancelable: true }), of);
  const steps: Readonly<Record<string, (...of: never[]) => unknown>> = {
    know: (of: object) => know(live, of),
    answer: (of: object) => Object.assign(answers, of),
    draw: async (name: string, props: object) => {
      component = ((await import(COMPONENTS[name] ?? '')) as Readonly<Record<string, Page>>)[name] ?? component;
      await show(props);
    },
    click: (selector: string) => place.querySelector<HTMLElement>(selector)?.click(),
    submit: (selector: string) => place.querySelector(selector)?.dispatchEvent(event('submit')),
    type: (selector: string, value: string) => {
      const field = place.querySelector<HTMLInputElement>(selector);
      if (field !== null) field.value = value;
      field?.dispatchEvent(event('input'));
    },
    press: (selector: string, key: string) => place.querySelector(selector)?.dispatchEvent(event('keydown', { key })),
    wait: (ms: number) => pass(ms),
  };
  const result: string[] = [];
  let before: string[] = [];
  for (const step of written.split('; ')) {
    const [, word = '', rest = ''] = /^(\w+) ?(.*)$/.exec(step) ?? [];
    expect(Object.keys(steps)).toContain(word);
    await steps[word]?.(...(JSON.parse(`[${rest}]`) as never[]));
    await pass();
    const { stale } = document.documentElement.dataset;
    const now = `${location.hash} ${stale ?? ''}\n${outline(place as never)}`.split(/(?<=\n)/);
    if (place.childNodes.length > 0)
      result.push(
        `${step.slice(0, 60)}: ${asked.splice(0).join(', ')}`,
        ...difference(before, now).trimEnd().split('\n'),
      );
    before = now;
  }
  end();
  return result;
}

it('components draw and request after each step what is written', async () => {
  vi.stubEnv('TZ', 'UTC');
  onTestFinished(() => void vi.unstubAllEnvs());
  await expectCases(path.join(import.meta.dirname, 'components.txt'), stepsOf);
});

type Page = (props: object) => null;

/** A component on its own. */
const component = (drawn: Page, props: object) =>
  rendered(() => ({ answer: h(drawn, props), problem: undefined }), true);

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
