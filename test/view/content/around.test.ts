/** The lines around places: what `grep -C` prints of a whole text, each line once. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { linesAround } from '../../../src/view/content/around.ts';
import { numRuns } from '../../support/property-runs.ts';
import { sourceOf } from '../../support/view-memory-source.ts';

/** The numbers of the lines near the lines of places. */
function near(lines: readonly string[], places: readonly number[], context: number): number[] {
  const starts = lines.map((_, index) => lines.slice(0, index).join('\n').length + (index === 0 ? 0 : 1));
  const wanted = places.map((place) => starts.findLastIndex((start) => start <= place));
  return lines.flatMap((_, index) => (wanted.some((line) => Math.abs(line - index) <= context) ? [index] : []));
}

describe('the lines around places', () => {
  it('are those of the places with their context, each once and in order', () => {
    const texts = fc.array(fc.constantFrom('', 'a', 'bcd', 'ef gh', 'ij'.repeat(9)), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(texts, fc.array(fc.nat()), fc.nat({ max: 4 }), (lines, chosen, context) => {
        const text = lines.join('\n');
        if (text === '') return;
        const places = [...new Set(chosen.map((place) => place % text.length))].sort((a, b) => a - b);
        const found = [...linesAround(sourceOf(Buffer.from(text)), places, context)];
        const shown = found.flatMap((place) => place.lines.map(({ at, bytes }) => [at, bytes.toString()]));
        const starts = lines.map((_, index) => lines.slice(0, index).join('\n').length + (index === 0 ? 0 : 1));
        // An empty last line is none.
        const expected = near(lines, places, context).filter((line) => (starts[line] ?? 0) < text.length);
        expect(shown).toEqual(expected.map((line) => [starts[line], lines[line]]));
        const last = found.filter((place) => place.lines.length > 0);
        for (const [index, place] of last.entries()) {
          const before = last[index - 1]?.lines.at(-1);
          const isApart = before !== undefined && place.lines[0]?.at !== before.at + before.bytes.length + 1;
          expect(place.isApart).toBe(isApart);
        }
      }),
      numRuns(200),
    );
  });

  it('show of a long line what is around the place, and no half of a character', () => {
    const bytes = Buffer.from(`first\n${'ž'.repeat(100_000)}needle${'ž'.repeat(100_000)}\nlast`);
    const place = bytes.indexOf('needle');
    const [around] = linesAround(sourceOf(bytes), [place], 3);
    const [line] = around?.lines ?? [];
    expect(around?.lines.length).toBe(1);
    expect(line?.bytes.toString()).toMatch(/^ž+needlež+$/);
    expect(line?.bytes.equals(bytes.subarray(line.at, line.at + line.bytes.length))).toBe(true);
  });
});
