/** Steps from job to job and from picture to picture, and what the tab of the browser shows. */
import { beforeEach, expect, it } from 'vitest';
import type { JobSummary } from '../../../src/view/contract/events.ts';
import type { Route } from '../../../src/view/page/route.ts';
import { stubPage } from '../../support/view-models.ts';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
const NAVIGATION = '../../../src/view/page/navigation.ts';
const LIVE = '../../../src/view/page/live.ts';

interface Navigation {
  noteJobOrder(jobs: readonly Pick<JobSummary, 'jobId'>[]): void;
  notePictures(names: readonly string[]): void;
  showInTab(route: Route): void;
  stepJobs(isBack: boolean): void;
  stepPictures(isBack: boolean): boolean;
}

const location = { pathname: '/', search: '', hash: '' };
const icon = { href: '' };
const document = { hidden: false, title: '', querySelector: () => icon };
let page: Navigation;

beforeEach(async () => {
  stubPage({ location, document });
  page = (await import(NAVIGATION)) as Navigation;
});

it('a step leads to the next job of the list, and past its ends to the list', () => {
  page.noteJobOrder(['7', '5', '6'].map((jobId) => ({ jobId })));
  location.hash = '#/job/5/results';
  const seen = [false, false, true, false].map((isBack) => {
    page.stepJobs(isBack);
    return location.hash;
  });
  expect(seen).toEqual(['#/job/6/live', '#/', '#/', '#/']);
  location.hash = '#/job/5/live';
  page.stepJobs(true);
  expect(location.hash).toBe('#/job/7/live');
});

it('a step leads to the next picture of the results, and is left to the browser where there is none', () => {
  page.notePictures(['/a.png', '/b.png']);
  location.hash = '#/job/5/results?name=/a.png';
  const seen = [true, false, false, true].map((isBack) => [page.stepPictures(isBack), location.hash]);
  const [a, b] = ['#/job/5/results?name=/a.png', '#/job/5/results?name=%2Fb.png'];
  expect(seen).toEqual([
    [false, a],
    [true, b],
    [false, b],
    [true, '#/job/5/results?name=%2Fa.png'],
  ]);
  for (const hash of ['#/job/5/results', '#/job/5/results?name=/c.txt', '#/']) {
    location.hash = hash;
    expect([page.stepPictures(false), location.hash]).toEqual([false, hash]);
  }
});

it('the tab has the state, the number and the name of the job, with a colour for what needs a person', async () => {
  const { live } = (await import(LIVE)) as { live: { details: { value: ReadonlyMap<string, object> } } };
  const job = { jobId: '5', name: 'cfd\u202e', state: 'watched', stalledAt: null, firstError: null };
  const shown = (route: Route) => {
    page.showInTab(route);
    return [document.title, /fill%3D%22%23([0-9a-f]+)/.exec(icon.href.replaceAll('=', '%3D'))?.[1]];
  };
  const route = { page: 'live', jobId: '5', files: [] } as const;
  expect([{ page: 'jobs' }, { page: 'service' }, route].map((each) => shown(each as Route))).toEqual([
    ['jobtail', '0f766e'],
    ['service · jobtail', '0f766e'],
    ['5 · jobtail', '0f766e'],
  ]);
  for (const [more, state, colour] of [
    [{ jobState: 'Failed' }, 'Failed', 'b3261e'],
    [{ jobState: 'Running', stalledAt: 1 }, 'Running', 'b3261e'],
    [{ jobState: 'Running' }, 'Running', '0f766e'],
    [{ jobState: null, state: 'settled' }, 'settled', '64748b'],
  ] as const) {
    live.details.value = new Map([['5', { ...job, ...more }]]);
    expect(shown(route)).toEqual([`${state} · 5 cfd\\u{202E} · jobtail`, colour]);
  }
});
