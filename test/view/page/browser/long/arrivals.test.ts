/** When lines arrived: beside each line, in words, as a histogram, and as a place to go to. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import type { Arrivals } from '../../../../../src/view/contract/addresses.ts';
import { arrivedText, arrivedWords } from '../../../../../src/view/page/file/arrivals.ts';
import { PATIENCE, until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { viewedJob } from '../../../../support/view-growing-job.ts';

it('lines show when the agent received them', { ...PATIENCE, ...needs('chromium') }, async (context) => {
  const startedAt = Date.now();
  const { view, label, hash, place, job, task } = await viewedJob(context, 'first\nsecond\n');
  await view.show(hash);
  const pane = await view.pane(label);
  const appendedAt = Date.now();
  fs.appendFileSync(task.files.stdout, 'third <b>\n');
  await place.mirrored(job, 'stdout');
  const mirroredAt = Date.now();
  await pane.getByText('third <b>').waitFor();
  await pane.getByRole('button', { name: 'Show when lines arrived' }).click();
  const address = `api/arrivals?job=${job.jobId}&task=${task.taskId}&file=stdout`;
  const last = await until('the time of the last line', async () => {
    const { arrivals } = (await view.page.evaluate(`fetch('${address}').then((it) => it.json())`)) as Arrivals;
    return arrivals.at(-1)?.[1] === 23 ? arrivals.at(-1) : undefined;
  });
  const [start = -1, , from = 0, to = 0] = last;
  // The range contains the moment at which the line arrived, and is no wider than the agent has run.
  expect(start).toBeLessThanOrEqual(13);
  expect(from).toBeGreaterThanOrEqual(startedAt);
  expect(from).toBeLessThanOrEqual(mirroredAt);
  expect(to).toBeGreaterThanOrEqual(appendedAt);
  expect(to).toBeLessThanOrEqual(Date.now());
  const arrived = { from, to };
  const times = pane.locator('.arrived');
  await until('the time in the column', async () => (await times.last().innerText()) === arrivedText(arrived, to));
  expect(await times.count()).toBe(3);
  await pane.getByRole('img', { name: /^Lines over time/ }).waitFor();

  await pane.getByRole('button', { name: 'line 3', exact: true }).click();
  await pane
    .getByRole('status')
    .filter({ hasText: arrivedWords(arrived, to) })
    .waitFor();
  await view.page.keyboard.press('t');
  await times.first().waitFor({ state: 'detached' });
  // Without the column, the number of a line has it.
  expect(await pane.getByRole('button', { name: 'line 3', exact: true }).getAttribute('title')).toBe(
    arrivedWords(arrived, to),
  );
  await view.page.keyboard.press('l');
  await view.page.keyboard.type('99:99');
  await view.page.keyboard.press('Enter');
  await until('a refusal', async () => (await pane.locator('.goto').getAttribute('aria-invalid')) === 'true');
  const clock = await view.page.evaluate(`new Date(${to}).toTimeString().slice(0, 8)`);
  await view.page.keyboard.press('Escape');
  await view.page.keyboard.press('l');
  await view.page.keyboard.type(String(clock));
  await view.page.keyboard.press('Enter');
  await until('the rows', async () => (await view.page.evaluate('document.activeElement.className')) !== 'goto');
  expect(view.wrongs).toEqual([]);
});
