/** What grows on the cluster grows on the page, byte for byte what the mirror has. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PATIENCE, until } from '../../../support/e2e-until.ts';
import { needs } from '../../../support/needs.ts';
import { linkOf } from '../../../support/view-browser.ts';
import { LANGUAGES, lines, viewedJob } from '../../../support/view-growing-job.ts';

describe('a file that grows', needs('chromium'), () => {
  it('is on the page what it is in the mirror, from its first byte to its last', PATIENCE, async (context) => {
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

  it('that is rewritten begins anew; what it was can still be read', PATIENCE, async (context) => {
    const { place, job, task, mirror, view, label, hash } = await viewedJob(context, lines(0, 200));
    await view.show(hash);
    const pane = await view.pane(label);
    await pane.getByText(/^199 /).waitFor();
    fs.writeFileSync(task.files.stdout, 'a new beginning\n');
    await place.mirrored(job, 'stdout');
    await pane.getByText('a new beginning', { exact: true }).waitFor();
    expect(await view.wholeText(pane)).toBe('a new beginning\n');
    const former = `${mirror}.1`;
    await pane.getByRole('combobox', { name: 'Generation' }).selectOption({ index: 1 });
    const old = await view.pane(label);
    await old.getByText(/^199 /).waitFor();
    expect(await view.wholeText(old)).toBe(fs.readFileSync(former, 'utf8'));
  });

  it('goes on after the agent was killed and started again, under the same page', PATIENCE, async (context) => {
    const { place, job, task, mirror, agent, view, label, hash } = await viewedJob(context, lines(0, 200));
    await view.show(hash);
    const pane = await view.pane(label);
    await pane.getByText(/^199 /).waitFor();
    await view.page.evaluate(() => Object.assign(globalThis, { isSamePage: true }));
    await agent.kill();
    await view.page.locator('.connection.lost').waitFor();
    fs.appendFileSync(task.files.stdout, lines(200, 50));
    await place.run();
    await place.mirrored(job, 'stdout');
    // The session ended with the agent; a new link, opened in another tab, lets this one go on.
    await view.page.getByRole('heading', { name: 'No access' }).waitFor();
    const other = await view.context.newPage();
    await other.goto(await linkOf(place));
    await other.locator('.connection.open').waitFor();
    await pane.getByText(/^249 /).waitFor();
    await view.page.locator('.connection.open').waitFor();
    expect(await view.wholeText(pane)).toBe(fs.readFileSync(mirror, 'utf8'));
    expect(await view.page.evaluate(() => 'isSamePage' in globalThis)).toBe(true);
  });
});
