/** What components show of answers that come late, fail, or are wanted no more; and lists that a reader unfolds. */
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { Window } from 'happy-dom';
import { h, render } from 'preact';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import type { JobSummary } from '../../../../src/view/contract/events.ts';
import { sendBy } from '../../../../src/view/page/api.ts';
import { expectCases, stepOf } from '../../../support/errors.ts';
import { difference, jobSummary, outline, stubPage } from '../../../support/view-models.ts';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
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

beforeEach(() => {
  const window = new Window();
  const { document } = window;
  // Without a layout, all has a size.
  for (const side of ['offsetWidth', 'offsetHeight', 'clientWidth', 'clientHeight'])
    Object.defineProperty(window.HTMLElement.prototype, side, { get: () => 600 });
  stubPage({ document });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => void vi.useRealTimers());

type Page = (props: object) => null;

/** Renders a component. */
function rendered(component: () => Page) {
  const place = document.createElement('div');
  const pass = async (ms = 100) => {
    await vi.advanceTimersByTimeAsync(ms);
    for (let turns = 0; turns < 5; turns++) await turn();
  };
  return {
    place,
    pass,
    show: async (props: object) => {
      render(h(component(), props), place);
      await pass();
    },
    end: () => render(null, place),
  };
}

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
  const signals: AbortSignal[] = [];
  let [busy, held, release] = [0, Promise.resolve(), () => {}];
  sendBy(async (to, signal) => {
    const name = to.replace(/^api\//, '');
    asked.push(name);
    if (signal !== null) signals.push(signal);
    await held;
    if (busy-- > 0)
      return Response.json({ error: { message: 'busy' } }, { status: 429, headers: { 'retry-after': '1' } });
    if (name.startsWith('pass?'))
      return Response.json({ address: `api/${new URLSearchParams(name).get('pass?to')}&pass=x` });
    const answer = answers[name];
    if (answer === undefined) return Response.json({ error: { message: `there is no ${name}` } }, { status: 404 });
    return new Response(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  let component: Page = () => null;
  const { show, pass, place, end } = rendered(() => component);
  const event = (type: string, of: object = {}) =>
    Object.assign(new (document.defaultView as typeof globalThis).Event(type, { bubbles: true, cancelable: true }), of);
  const steps: Readonly<Record<string, (...of: never[]) => unknown>> = {
    know: (of: object) => know(live, of),
    answer: (of: object) => Object.assign(answers, of),
    busy: (times: number) => {
      busy = times;
    },
    hold: () => {
      held = new Promise((resolve) => (release = resolve));
    },
    release: () => release(),
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
    await stepOf(step, steps);
    await pass();
    const { stale } = document.documentElement.dataset;
    const now = [
      `${location.hash} ${stale ?? ''}`,
      ...outline(place as never)
        .trimEnd()
        .split('\n'),
    ];
    if (place.childNodes.length > 0)
      result.push(`${step.slice(0, 60)}: ${asked.splice(0).join(', ')}`, ...difference(before, now));
    before = now;
  }
  end();
  asked.length = 0;
  await pass(30_000);
  expect([asked, vi.getTimerCount(), signals.filter(({ aborted }) => !aborted)]).toEqual([[], 0, []]);
  return result;
}

it('components draw and request after each step what is written', async () => {
  vi.stubEnv('TZ', 'UTC');
  onTestFinished(() => void vi.unstubAllEnvs());
  await expectCases(path.join(import.meta.dirname, 'components.txt'), stepsOf);
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
  const { show, place, end } = rendered(() => Csv);
  await show({ content: {}, bytes: content.length, onText: () => {} });
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
  const { show, place, end } = rendered(() => JobsPage);
  await show({});
  const rows = [...place.querySelectorAll('.job-row')];
  expect(rows[0]?.textContent).toMatch(/^3/);
  expect(rows.length).toBeLessThan(30);
  expect([...place.querySelectorAll('.chip')].map((chip) => chip.textContent)).toEqual(['1 failed', '499 running']);
  end();
});
