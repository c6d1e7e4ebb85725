/** Very many jobs in a real browser. */
import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../../../src/job.ts';
import { needs } from '../../../../support/needs.ts';
import { startBrowser, ViewPage } from '../../../../support/view-browser.ts';
import { ViewPlace } from '../../../../support/view-place.ts';

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds of the processor. */
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

/** The longest task of the thread that a page runs in. */
function longestTaskMs(trace: Buffer): number {
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: TraceEvent[] };
  const isPage = ({ name, args }: TraceEvent) => name === 'thread_name' && args?.name === 'CrRendererMain';
  const threads = new Set(traceEvents.filter(isPage).map(({ pid, tid }) => `${pid}/${tid}`));
  const tasks = traceEvents.filter(({ pid, tid, tdur }) => tdur !== undefined && threads.has(`${pid}/${tid}`));
  expect(tasks.length).toBeGreaterThan(100);
  return Math.max(...tasks.map(({ tdur = 0 }) => tdur)) / 1_000;
}

describe('much at a time', needs('chromium'), () => {
  it('of 500 jobs, only those on the screen are drawn, wherever a person scrolls', async (context) => {
    const place = await ViewPlace.serve();
    place.store.transaction(() => {
      for (let number = 0; number < 500; number++) {
        const jobId = String(10_000 + number) as JobId;
        place.addJob(jobId);
        place.report(jobId, { name: `job ${number}`, state: number === 3 ? 'Failed' : 'Running' });
      }
    });
    const browser = await startBrowser(context);
    const view = await ViewPage.open(browser, place.view.link());
    const rows = view.page.locator('.job-row');
    await rows.first().waitFor();
    // Twenty and more on a screen of 800 pixels, what failed first.
    await view.page.getByRole('button', { name: '499 running' }).waitFor();
    await view.page.getByRole('button', { name: '1 failed' }).waitFor();
    expect(await rows.first().textContent()).toContain('10003');
    expect(await rows.count()).toBeGreaterThan(19);
    // Rows that nobody sees are what scrolling costs.
    const MAX_DRAWN = 30;
    const scrolled = (top: number) =>
      view.page.locator('.job-list').evaluate((list, to) => {
        list.scrollTop = to;
        return list.scrollHeight;
      }, top);
    const height = await scrolled(0);
    await browser.startTracing(view.page, { categories: ['toplevel'] });
    for (let top = 0; top < height; top += 2_000) {
      await scrolled(top);
      await view.page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
      expect(await rows.count()).toBeLessThanOrEqual(MAX_DRAWN);
    }
    await scrolled(height);
    await view.page.getByRole('link', { name: '10000' }).waitFor();
    // Of the processor, which another process does not lengthen as it does the time that passes.
    const longest = longestTaskMs(await browser.stopTracing());
    await context.annotate(`the longest task of the page while 500 jobs scroll: ${longest.toFixed(1)} ms`);
    // A machine with much else to do is slow; a page that draws all jobs takes far longer.
    expect(longest).toBeLessThan(500);
    expect(view.wrongs).toEqual([]);
  });
});
