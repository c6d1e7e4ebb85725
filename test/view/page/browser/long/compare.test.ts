/** The same file of two tasks: which lines differ. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { requestOf } from '../../../../support/e2e-job.ts';
import { Place } from '../../../../support/e2e-place.ts';
import { PATIENCE, until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { linkOf, startBrowser, ViewPage, viewSection } from '../../../../support/view-browser.ts';

/** Equal for longer than one request, but for the numbers. */
const output = (task: number, last: string) =>
  `${Array.from({ length: 20_000 }, (_, index) => `step ${index} of the solver`).join('\n')}\nseed ${task}\n<i>${last}</i>\n`;

describe('the same file of two tasks', needs('chromium'), () => {
  it('is compared around the first byte that differs', PATIENCE, async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    const job = await sandbox.submit({ tasks: [{ name: 'a' }, { name: 'b' }] });
    const [first, second] = job.tasks;
    if (first === undefined || second === undefined) throw new Error('two tasks were submitted');
    fs.writeFileSync(first.files.stdout, output(17, 'converged'));
    fs.writeFileSync(second.files.stdout, output(18, 'diverged'));
    place.configure(sandbox, { watch: [requestOf(job)], results: { enabled: false }, ...(await viewSection()) });
    await place.run();
    const view = await ViewPage.open(await startBrowser(context), await linkOf(place));
    await view.show(`#/job/${job.jobId}/live?file=${first.taskId}/stdout`);
    const pane = await view.pane(`stdout of task ${first.taskId}`);
    await pane.getByText('<i>converged</i>').waitFor();
    await pane.getByRole('combobox', { name: 'Compare with' }).selectOption(`stdout of task ${second.taskId}`);
    const difference = pane.getByRole('region', { name: 'Difference' });
    const lines = async () => {
      const texts = await difference.locator('.difference-line').allInnerTexts();
      return texts.map((text) => text.replace('\n', ''));
    };
    const before = ['step 19997', 'step 19998', 'step 19999'].map((step) => ` ${step} of the solver`);
    const its = ['-seed 18', '-<i>diverged</i>'];
    const mine = ['+seed 17', '+<i>converged</i>'];
    await until('the difference', async () => (await lines()).join() === [...before, ...its, ...mine].join());
    await difference.getByRole('checkbox', { name: 'ignore numbers' }).check();
    const known = [...before.slice(1), ' seed 17', its[1], mine[1]];
    await until('the words that differ', async () => (await lines()).join() === known.join());
    await difference.getByRole('button', { name: 'Close the difference' }).click();
    await difference.waitFor({ state: 'hidden' });
    expect(await view.page.evaluate('document.querySelector(".pane i")')).toBeNull();
    expect(view.wrongs).toEqual([]);
  });
});
