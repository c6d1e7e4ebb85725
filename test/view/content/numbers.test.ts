/** Numbers of lines that are alike. */
import { describe, expect, it } from 'vitest';
import { numbersOf, shapeAt, thinnedRows } from '../../../src/view/content/numbers.ts';
import { sourceOf } from '../../support/view-models.ts';

describe('the numbers', () => {
  const lines = (from: number, to: number) =>
    Array.from(
      { length: to - from },
      (_, index) => `iteration ${from + index}\r\nresidual\t${1 / (from + index)}\r\n`,
    ).join('');

  async function rowsOf(text: string, like: string, start = 0) {
    const source = sourceOf(Buffer.from(text));
    const shape = shapeAt(source, text.indexOf(like) + 3);
    const found = { at: [] as number[], rows: [] as (number | null)[][], to: start };
    for await (const { at, rows, to } of numbersOf(source, shape, start)) {
      found.at.push(...at);
      found.rows.push(...rows.map((row) => [...row]));
      found.to = to;
    }
    return found;
  }

  it('are those of the lines that are like one, wherever slices are cut', async () => {
    const text = lines(1, 20_000);
    const { at, rows, to } = await rowsOf(text, 'residual');
    expect(rows).toEqual(Array.from({ length: 19_999 }, (_, index) => [1 / (index + 1)]));
    expect(at.every((byte) => text.startsWith('residual', byte))).toBe(true);
    expect(to).toBe(text.length);
  });

  it('beyond 50,000 are every second one, and after as many of these every fourth', async () => {
    const source = sourceOf(Buffer.from(Array.from({ length: 180_000 }, (_, step) => `step ${step}\n`).join('')));
    const [steps, indexes]: [number[], number[]] = [[], []];
    let count = 0;
    for await (const line of thinnedRows(source as never, shapeAt(source, 0), 0))
      if ('rows' in line) {
        for (const [step] of line.rows) steps.push(Number(step));
        indexes.push(...line.index);
      } else if ('done' in line) ({ count } = line);
    expect([count, indexes]).toEqual([180_000, steps]);
    const gaps = steps.slice(1).map((step, index) => step - (steps[index] ?? 0));
    expect([1, 2, 4].map((gap) => gaps.filter((each) => each === gap).length)).toEqual([50_000, 50_000, 7_499]);
    expect(gaps).toHaveLength(107_499);
  });
});
