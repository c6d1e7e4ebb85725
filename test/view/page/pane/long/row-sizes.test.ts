import { expect, it } from 'vitest';
import { forgetSizes } from '../../../../../src/view/page/file/text-window.ts';

it('heights are kept of the rows that are here, however many there were', () => {
  const sizes = new Map<number, number>();
  for (let start = 0; start < 1_000_000; start += 10) {
    sizes.set(start, 40);
    const rows = Array.from({ length: 50 }, (_, index) => start - 10 * index).reverse();
    forgetSizes(sizes, { start: start - 490, end: start + 10, rows });
    expect(sizes.size).toBeLessThanOrEqual(2_051);
    expect(sizes.get(start)).toBe(40);
  }
});
