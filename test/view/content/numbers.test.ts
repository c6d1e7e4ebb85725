/** Numbers of lines that are alike. */
import { describe, expect, it } from 'vitest';
import { shapeAt, thinnedRows } from '../../../src/view/content/numbers.ts';
import { sourceOf } from '../../support/view-models.ts';

describe('the numbers', () => {
  it('of lines that are like one are those, wherever slices are cut; beyond 50,000 every second one, then every fourth', async () => {
    const lines = Array.from({ length: 180_000 }, (_, step) => `step\t${step}\r\nresidual 1\n`);
    const source = sourceOf(Buffer.from(lines.join('')));
    const [at, steps, indexes]: [number[], number[], number[]] = [[], [], []];
    let count = 0;
    for await (const line of thinnedRows(source as never, shapeAt(source, 0), 0))
      if ('rows' in line) {
        for (const [step] of line.rows) steps.push(Number(step));
        at.push(...line.at);
        indexes.push(...line.index);
      } else if ('done' in line) ({ count } = line);
    expect([count, indexes]).toEqual([180_000, steps]);
    const text = lines.join('');
    expect(at.every((byte, index) => text.startsWith(lines[steps[index] ?? -1] ?? '?', byte))).toBe(true);
    const gaps = steps.slice(1).map((step, index) => step - (steps[index] ?? 0));
    expect([1, 2, 4].map((gap) => gaps.filter((each) => each === gap).length)).toEqual([50_000, 50_000, 7_499]);
    expect(gaps).toHaveLength(107_499);
  });
});
