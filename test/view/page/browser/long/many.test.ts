/** Much of it: a job of many tasks, and many jobs. */
import { describe, expect, it } from 'vitest';
import type { JobId, TaskId } from '../../../../../src/job.ts';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { startBrowser, ViewPage } from '../../../../support/view-browser.ts';
import { JOB, ViewPlace } from '../../../../support/view-place.ts';

const TASKS = 200;
const FAILED = 150;
const taskId = (number: number) => String(9_000 + number) as TaskId;

/** A job of 200 tasks: each wrote its standard output, one failed. */
function addTasks(place: ViewPlace): void {
  const numbers = Array.from({ length: TASKS }, (_, number) => number);
  place.store.transaction(() => {
    for (const number of numbers) {
      place.addJob(JOB, taskId(number));
      place.write('stdout', `task ${number}\n`.repeat(number + 1), JOB, taskId(number));
    }
    place.write('stderr', 'Segmentation fault\n', JOB, taskId(FAILED));
    place.report(JOB, {
      state: 'Failed',
      tasks: numbers.map((number) => ({
        ...{ id: taskId(number), name: `part ${number}`, startTime: null, endTime: null },
        state: number === FAILED ? 'Failed' : 'Finished',
        errorMessage: number === FAILED ? 'exit code <b>139</b>' : null,
      })),
    });
  });
}

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
  it('a job of many tasks opens at what failed, and its table is filtered, sorted and folded', async (context) => {
    const place = await ViewPlace.serve();
    addTasks(place);
    const view = await ViewPage.open(await startBrowser(context), place.view.link());
    await view.show(`#/job/${JOB}/live`);
    const pane = await view.pane(`stderr of task ${taskId(FAILED)}`);
    await pane.getByText('Segmentation fault').waitFor();
    const list = view.page.getByRole('navigation', { name: 'Live files' });
    // What failed is first, and unfolded; of the others and of empty files nothing takes room.
    const rows = async () => (await list.locator('.task-row').allTextContents()).map((text) => text.trim());
    expect((await rows()).slice(0, 4)).toEqual([
      expect.stringMatching(new RegExp(`^Task ${taskId(FAILED)} part 150Failed.*exit code <b>139</b>$`)),
      expect.stringMatching(/^stdout/),
      expect.stringMatching(/^stderr/),
      expect.stringMatching(/^Task 9000 part 0Finished/),
    ]);
    // What is not on the screen is not in the document.
    expect((await rows()).length).toBeLessThan(60);
    const screenshots = process.env['JOBTAIL_SCREENSHOTS'];
    if (screenshots !== undefined) await view.page.screenshot({ path: `${screenshots}/tasks.png` });

    await list.getByRole('button', { name: `${taskId(FAILED)} part` }).click();
    expect((await rows())[1]).toMatch(/^Task 9000/);
    await list.getByRole('columnheader', { name: 'Size' }).getByRole('button').click();
    await until('the largest first', async () => (await rows())[0]?.startsWith(`Task ${taskId(TASKS - 1)}`));
    await list.getByRole('searchbox').fill('PART 917');
    await list.getByText('10 of 200 tasks').waitFor();
    await list.getByRole('button', { name: '10 finished' }).click();
    await list.getByRole('button', { name: '9170 part 170' }).click();
    await list.getByRole('link', { name: 'stdout', exact: false }).first().waitFor();
    expect(await list.locator('.file-link', { hasText: 'stderr' }).count()).toBe(0);
    await list.getByRole('checkbox').check();
    await list.locator('.file-link', { hasText: 'stderr' }).click();
    await view.page.locator(`section.pane[aria-label="stderr of task ${taskId(170)}"]`).waitFor();
    expect(view.wrongs).toEqual([]);
  });

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
