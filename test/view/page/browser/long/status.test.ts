/** The one status of the page: what turns grey, and what is shown once, when the page is not current. */
import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../../../src/job.ts';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { startBrowser, ViewPage } from '../../../../support/view-browser.ts';
import { JOB, TASK, ViewPlace } from '../../../../support/view-place.ts';

const OTHER = '502' as JobId;

async function viewOf(place: ViewPlace, context: Parameters<typeof startBrowser>[0]) {
  place.store.transaction(() => {
    for (const jobId of [JOB, OTHER]) {
      place.addJob(jobId);
      place.write('stdout', 'a line\n', jobId);
      place.report(jobId, { state: 'Running' });
    }
  });
  const view = await ViewPage.open(await startBrowser(context), place.view.link());
  await view.page.locator('.job-row').nth(1).waitFor();
  const colourOf = (selector: string) => view.styleOf(selector, 'color');
  const corner = async (words: string) => {
    await view.page.getByRole('banner').getByText(words, { exact: true }).waitFor();
  };
  return { view, colourOf, corner };
}

/** All jobs fail, as they do when the service is down; null: all were polled. */
function fail(place: ViewPlace, error: { readonly since: number; readonly retryAt: number } | null): void {
  const outage = { code: 'unreachable', message: 'connection refused', hint: 'run `agent check`' } as const;
  place.store.transaction(() => {
    for (const jobId of [JOB, OTHER]) {
      const end = { grownAt: null, refused: 0, failures: error === null ? 0 : 3 };
      if (error === null) place.store.jobs.endRun(jobId, { ...end, error: null, polledAt: Date.now() });
      else place.store.jobs.endRun(jobId, { ...end, error: { ...outage, ...error }, polledAt: 1_000 });
    }
  });
}

describe('the status', needs('chromium'), () => {
  it('is grey and said once while the service is down, and green again after it', async (context) => {
    const place = await ViewPlace.serve({ agentPid: process.pid });
    const { view, colourOf, corner } = await viewOf(place, context);
    await corner('live');
    const green = await colourOf('.state.active');
    const now = Date.now();
    fail(place, { since: now - 120_000, retryAt: now + 3_600_000 });
    await corner('service down');
    const banner = view.page.locator('.banner');
    await banner.getByText('connection refused').waitFor();
    // With the day, where that was before midnight.
    await banner.getByText(/^Since .*\d\d:\d\d \(2 min\)\.$/).waitFor();
    await banner.getByText(/^Next attempt in (1 h|\d+ min)\.$/).waitFor();
    expect(await banner.locator('code').textContent()).toBe('agent check');
    expect(await view.page.locator('.job-row .failure').count()).toBe(0);
    expect(await colourOf('.state.active')).not.toBe(green);
    const screenshots = process.env['JOBTAIL_SCREENSHOTS'];
    if (screenshots !== undefined) await view.page.screenshot({ path: `${screenshots}/down.png` });

    await view.show(`#/job/${JOB}/live?file=${TASK}/stdout`);
    const following = '.icon-button.following';
    await view.page.locator(following).waitFor();
    const grey = await colourOf(following);
    fail(place, null);
    await corner('live');
    expect(await banner.textContent()).toBe('');
    await until('the colour of what is current', async () => (await colourOf(following)) !== grey);
    expect(view.wrongs).toEqual([]);
  });

  it('is grey while no agent runs, and when the view is gone', async (context) => {
    const place = await ViewPlace.serve();
    const { view, corner, colourOf } = await viewOf(place, context);
    await corner('agent stopped');
    await view.page.locator('.banner').getByText('No agent runs: nothing new arrives.').waitFor();
    const grey = await colourOf('.state.active');
    await place.view.close();
    await corner('view lost');
    await view.page.locator('.banner').getByText('The view does not answer.').waitFor();
    expect(await colourOf('.state.active')).toBe(grey);
    expect(view.wrongs).toEqual([]);
  });
});
