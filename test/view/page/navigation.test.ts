/** Steps from picture to picture, and the title of the page. */
import { beforeEach, expect, it } from 'vitest';
import type { Route } from '../../../src/view/page/route.ts';
import { stubPage } from '../../support/view-models.ts';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
const NAVIGATION = '../../../src/view/page/navigation.ts';
const LIVE = '../../../src/view/page/live.ts';

interface Navigation {
  notePictures(names: readonly string[]): void;
  titleOf(route: Route): string;
  stepPictures(isBack: boolean): boolean;
}

const location = { pathname: '/', search: '', hash: '' };
const document = { hidden: false };
let page: Navigation;

beforeEach(async () => {
  stubPage({ location, document });
  page = (await import(NAVIGATION)) as Navigation;
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

it('the title has the state, the number and the name of the job', async () => {
  const { live } = (await import(LIVE)) as { live: { details: { value: ReadonlyMap<string, object> } } };
  const route = { page: 'live', jobId: '5', files: [] } as const;
  const routes = [{ page: 'jobs' }, { page: 'service' }, route] as Route[];
  expect(routes.map(page.titleOf)).toEqual(['jobtail', 'service · jobtail', '5 · jobtail']);
  const titles = [{ jobState: 'Failed' }, { jobState: null }].map((more) => {
    live.details.value = new Map([['5', { jobId: '5', name: 'cfd\u202e', state: 'settled', ...more }]]);
    return page.titleOf(route);
  });
  expect(titles).toEqual(['Failed', 'settled'].map((state) => `${state} · 5 cfd\\u{202E} · jobtail`));
});
