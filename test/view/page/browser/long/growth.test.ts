/** What grows while a person pauses, plots, copies, looks elsewhere, and when very much of it comes. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { LANGUAGES, lines, viewedJob } from '../../../../support/view-jobs.ts';

describe('a file that grows', needs('chromium'), () => {
  it('is on the page what it is in the mirror, from its first byte to its last', async (context) => {
    const { task, mirror, view, label, hash } = await viewedJob(context, lines(0, 2_000));
    await view.show(hash);
    const pane = await view.pane(label);
    // In pieces that end within lines and within characters.
    const more = Buffer.from(lines(2_000, 500));
    for (let at = 0; at < more.length; at += 4_937) {
      fs.appendFileSync(task.files.stdout, more.subarray(at, at + 4_937));
      const { size } = fs.statSync(task.files.stdout);
      // A character that the end cuts waits for its rest.
      await until('the piece in the mirror', () => fs.statSync(mirror).size > size - 32);
    }
    const last = `2499 ${LANGUAGES[2_499 % LANGUAGES.length]}`;
    await pane.getByText(last, { exact: true }).waitFor();
    expect(await view.isAtEnd(pane)).toBe(true);
    expect(await view.wholeText(pane)).toBe(fs.readFileSync(mirror, 'utf8'));
    expect(view.wrongs).toEqual([]);
  });

  it('stands still while it is paused, says what came, and goes on', async (context) => {
    const { place, job, task, view, label, hash } = await viewedJob(context, lines(0, 300));
    await view.show(hash);
    const pane = await view.pane(label);
    await pane.getByText(/^299 /).waitFor();
    await pane.getByRole('button', { name: 'Following' }).click();
    const before = await view.shownLines(pane);
    fs.appendFileSync(task.files.stdout, lines(300, 20));
    await place.mirrored(job, 'stdout');
    await pane.getByRole('button', { name: / new$/ }).waitFor();
    expect(await view.shownLines(pane)).toEqual(before);
    await pane.getByRole('button', { name: / new$/ }).click();
    await pane.getByText(/^319 /).waitFor();
  });

  it('stays at its end when a plot takes half of its place, and the plot grows', async (context) => {
    const numbers = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => `residual ${(1 / (from + index + 1)).toExponential(3)}\n`).join('');
    const { task, view, label, hash } = await viewedJob(context, numbers(0, 200));
    await view.show(hash);
    const pane = await view.pane(label);
    await pane.getByLabel('More').click();
    await pane.getByRole('button', { name: 'Plot the numbers' }).click();
    await pane.getByText('200 points').waitFor();
    await until('the end on the page', () => view.isAtEnd(pane));
    fs.appendFileSync(task.files.stdout, numbers(200, 100));
    await pane.getByText('300 points').waitFor();
    await until('the end on the page', () => view.isAtEnd(pane));
    expect(view.wrongs).toEqual([]);
  });
});

describe('a tab that nobody sees', needs('chromium'), () => {
  it('asks for nothing, and has everything when it is seen again', async (context) => {
    const { place, job, task, view, label, hash } = await viewedJob(context, lines(0, 100));
    await view.show(hash);
    const pane = await view.pane(label);
    await pane.getByText(/^99 /).waitFor();
    // What a browser does with a tab behind another one.
    const turn = (isHidden: boolean) =>
      view.page.evaluate(`
        Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      `);
    const asked: string[] = [];
    const broken = view.page.waitForEvent('requestfailed', (request) => request.url().includes('/api/events'));
    await turn(true);
    await broken;
    view.page.on('request', (request) => asked.push(request.url()));
    fs.appendFileSync(task.files.stdout, lines(100, 50));
    await place.mirrored(job, 'stdout');
    expect(asked).toEqual([]);
    await turn(false);
    await pane.getByText(/^149 /).waitFor();
    expect(view.wrongs).toEqual([]);
  });
});

describe('many lines at once', needs('chromium'), () => {
  it('never freeze the page: it draws on, and its document stays small', async (context) => {
    const { place, job, task, view, label, hash } = await viewedJob(context, lines(0, 10));
    await view.show(hash);
    const pane = await view.pane(label);
    // How long the page is busy at a time, from now on.
    await view.page.evaluate(`
      globalThis.pauses = [];
      new PerformanceObserver((list) => pauses.push(...list.getEntries().map(({ duration }) => duration)))
        .observe({ type: 'longtask' });
    `);
    for (let round = 0; round < 20; round++) {
      fs.appendFileSync(task.files.stdout, lines(10 + round * 5_000, 5_000));
      await place.mirrored(job, 'stdout');
    }
    await pane.getByText(/^100009 /).waitFor();
    await until('the end', () => view.isAtEnd(pane));
    const pauses = (await view.page.evaluate('pauses')) as number[];
    // A machine with much else to do is slow; a page that takes in all lines stands still for many seconds.
    expect(Math.max(0, ...pauses)).toBeLessThan(2_000);
    expect(await pane.locator('.row').count()).toBeLessThan(200);
    expect(view.wrongs).toEqual([]);
  });
});
