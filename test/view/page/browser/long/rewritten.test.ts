/** What grows on the cluster grows on the page, byte for byte what the mirror has. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { needs } from '../../../../support/needs.ts';
import { lines, viewedJob } from '../../../../support/view-jobs.ts';

describe('a file that grows', needs('chromium'), () => {
  it('shows why each generation began; links lead to the generation they name', async (context) => {
    const first = Array.from({ length: 60 }, (_, line) => `line ${line}\n`);
    const { place, job, task, mirror, view, label, hash } = await viewedJob(context, first.join(''));
    await view.show(hash);
    const pane = await view.pane(label);
    await view.page.keyboard.press('g');
    await pane.getByRole('button', { name: 'line 11', exact: true }).click();
    await pane.getByRole('button', { name: 'line 13', exact: true }).click({ modifiers: ['Shift'] });
    const link = (await view.page.evaluate('location.hash')) as string;
    expect(link).toMatch(/%4070-86%3Ag1$/);
    const hostile = '<img src=x onerror=window.hacked=1>\n';
    fs.writeFileSync(task.files.stdout, [...first.slice(0, 30), hostile, ...first.slice(31, 50)].join(''));
    await place.mirrored(job, 'stdout');
    // The pane keeps the selected lines; a new one follows the link.
    await view.show('#/');
    await view.show(link);
    const old = await view.pane(label);
    await old.getByText('line 11', { exact: true }).waitFor();
    expect(await old.locator('.row.selected .text').allInnerTexts()).toEqual(['line 10', 'line 11', 'line 12']);
    await view.show('#/');
    await view.show(hash);
    const now = await view.pane(label);
    await now.getByText(/^Generation 2 began: ./).waitFor();
    await now.getByRole('link', { name: /^Before, at byte/ }).click();
    await (await view.pane(label)).locator('.rows').getByText('line 30', { exact: true }).waitFor();
    for (const name of fs.readdirSync(path.dirname(mirror)))
      if (/stdout\.log\.1$/.test(name)) fs.rmSync(path.join(path.dirname(mirror), name));
    await view.show('#/');
    await view.show(link);
    await (await view.pane(label)).getByText(/generation of this link was rotated/).waitFor();
    expect(await view.page.evaluate('typeof window.hacked')).toBe('undefined');
    expect(view.wrongs).toEqual([]);
  });

  it('goes on after the agent was killed and started again, under the same page', async (context) => {
    const { place, job, task, mirror, agent, view, label, hash } = await viewedJob(context, lines(0, 200));
    await view.show(hash);
    const pane = await view.pane(label);
    await pane.getByText(/^199 /).waitFor();
    await view.page.evaluate(() => Object.assign(globalThis, { isSamePage: true }));
    await agent.kill();
    await view.page.locator('.connection.lost').waitFor();
    // What was read stays.
    expect(await pane.getByText(/^199 /).isVisible()).toBe(true);
    fs.appendFileSync(task.files.stdout, lines(200, 50));
    await place.run();
    await place.mirrored(job, 'stdout');
    await pane.getByText(/^249 /).waitFor();
    await view.page.locator('.connection.open').waitFor();
    expect(await view.wholeText(pane)).toBe(fs.readFileSync(mirror, 'utf8'));
    expect(await view.page.evaluate(() => 'isSamePage' in globalThis)).toBe(true);
  });
});
