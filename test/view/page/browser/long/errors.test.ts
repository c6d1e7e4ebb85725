/** From error to error in a log, by a key. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { viewedJob } from '../../../../support/view-jobs.ts';

const line = (index: number) => {
  if (index % 1_000 === 500) return `\u001b[1mERROR\u001b[0m: error in step ${index}`;
  return index === 700 ? 'WARN: slow' : `step ${index}, no errors`;
};

it('the errors of a log are gone to by keys, each line once, and have a colour', needs('chromium'), async (context) => {
  const { view, label, hash, task } = await viewedJob(
    context,
    Array.from({ length: 3_000 }, (_, index) => `${line(index)}\n`).join(''),
  );
  const { keyboard } = view.page;
  await view.show(hash);
  const pane = await view.pane(label);
  const found = (step: number) => pane.locator('.row.found').getByText(`error in step ${step}`).waitFor();
  // From the end of the file.
  await pane.getByText('step 2999, no errors').waitFor();
  await keyboard.press('E');
  await found(2_500);
  await pane.getByText('3 of 3', { exact: true }).waitFor();
  await keyboard.press('E');
  await found(1_500);
  await keyboard.press('E');
  await found(500);
  await keyboard.press('e');
  await found(1_500);
  const painted = () => view.page.evaluate('[...CSS.highlights.get("match")].map(String)') as Promise<string[]>;
  await until('the error to be painted', async () => (await painted()).join() === 'ERROR: error in step 1500');
  fs.appendFileSync(task.files.stdout, 'Segmentation fault\n');
  await pane.getByText('2 of 4', { exact: true }).waitFor();
  expect(await view.styleOf('.row.found .text', 'color')).toBe('rgb(179, 38, 30)');
  await keyboard.press('l');
  await keyboard.type('701');
  await keyboard.press('Enter');
  await pane.locator('.row.selected').getByText('WARN: slow').waitFor();
  expect(await view.styleOf('.row.selected .text', 'color')).toBe('rgb(122, 82, 0)');
  expect(view.wrongs).toEqual([]);
});
