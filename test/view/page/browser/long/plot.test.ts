/** The plot of a log: what a person gets without choosing, and what leads back to the lines. */
import { describe, expect, it } from 'vitest';
import { needs } from '../../../../support/needs.ts';
import { shown } from '../../../../support/view-browser.ts';
import { JOB, TASK } from '../../../../support/view-place.ts';

/** A curve that falls, one that does not, and a step that rises. */
const training = (steps: number) =>
  Array.from({ length: steps }, (_, step) => `step ${step * 10} loss ${(2 / (step + 1)).toFixed(4)} lr 1e-5\n`);

describe('a plot', needs('chromium'), () => {
  it('is over the column that rises, has an axis for each curve, and leads to lines', async (context) => {
    const { view, stdout } = await shown(context, { stdout: training(2_000).join('') });
    await view.show(`#/job/${JOB}/live?file=${TASK}/stdout`);
    const pane = await stdout();
    await pane.locator('.rows').press('p');
    const panel = pane.getByRole('region', { name: 'Plot' });
    await panel.getByText('2,000 points').waitFor();
    expect(await panel.getByRole('combobox', { name: 'over' }).locator('option:checked').textContent()).toBe('step');
    // The small curve has an axis of its own: it is no line at the bottom. The legend has the last values at once.
    await panel.locator('.u-series', { hasText: 'loss' }).getByText('0.001').waitFor();
    expect(await panel.locator('.u-axis').count()).toBe(3);

    const over = panel.locator('.u-over');
    const box = await over.boundingBox();
    await over.click({ position: { x: (box?.width ?? 0) / 2, y: 20 } });
    const chosen = pane.locator('.row.selected').first();
    await chosen.waitFor();
    const [, step] = /step ([0-9]+)/.exec((await chosen.textContent()) ?? '') ?? [];
    expect(Math.abs(Number(step) - 10_000)).toBeLessThan(1_000);
    expect(view.wrongs).toEqual([]);
  });
});
