/** The index of lines: the same numbers as counting from the beginning, however the content grew. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineIndex, LineIndexes } from '../../../src/view/content/line-index.ts';
import { numRuns } from '../../support/property-runs.ts';
import { sourceOf } from '../../support/view-models.ts';

const MIB = 1024 * 1024;

async function countAll(index: LineIndex, bytes: Buffer): Promise<void> {
  for await (const _ of index.count(sourceOf(bytes)));
}

const lineEnds = (bytes: Buffer) => bytes.toString('latin1').split('\n').length - 1;

/** Lines whose lengths repeat themselves, so that they meet the edges of blocks everywhere. */
function linesOf(lengths: readonly number[], total: number): Buffer {
  const bytes = Buffer.alloc(total, 'x');
  for (let at = 0, each = 0; at < total; each++) {
    at += lengths[each % lengths.length] ?? 1;
    if (at < total) bytes[at] = 0x0a;
    at++;
  }
  return bytes;
}

describe('the index of lines', () => {
  it('finds every line and every byte, as the content grows', async () => {
    const lengths = fc.array(fc.oneof(fc.nat(200), fc.nat(100_000)), { minLength: 1, maxLength: 6 });
    const sizes = fc.array(fc.oneof(fc.nat(3 * MIB), fc.constantFrom(MIB - 1, MIB, MIB + 1, 2 * MIB)), {
      minLength: 1,
      maxLength: 4,
    });
    // The line at the edge of a block begins in the one before it.
    const place = fc.oneof(fc.nat(3 * MIB), fc.constantFrom(MIB - 1, MIB, 2 * MIB, 2 * MIB + 1));
    const places = fc.array(place, { minLength: 5, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(lengths, sizes, places, async (lineLengths, growth, anywhere) => {
        const all = linesOf(lineLengths, 3 * MIB);
        const index = new LineIndex();
        for (const size of growth.sort((a, b) => a - b)) {
          const bytes = all.subarray(0, size);
          const source = sourceOf(bytes);
          await countAll(index, bytes);
          expect({ counted: index.counted, lines: index.lines }).toEqual({ counted: size, lines: lineEnds(bytes) });
          for (const byte of [...anywhere.map((at) => at % (size + 1)), 0, size]) {
            const line = lineEnds(bytes.subarray(0, byte));
            expect(index.lineOf(source, byte)).toBe(line);
            expect(index.startOf(source, line)).toBe(bytes.subarray(0, byte).lastIndexOf(0x0a) + 1);
          }
        }
      }),
      numRuns(15),
    );
  });

  it('says that it does not know yet', () => {
    const index = new LineIndex();
    expect(index.lineOf(sourceOf(Buffer.from('a\nb')), 2)).toBeUndefined();
    expect(index.startOf(sourceOf(Buffer.from('a\nb')), 1)).toBeUndefined();
    expect(index.lineOf(sourceOf(Buffer.from('a\nb')), 0)).toBe(0);
  });

  it('counts anew what was cut and has grown again, beyond what was counted or not', async () => {
    for (const [counted, cut, grown] of [
      [2.5 * MIB, 1.2 * MIB, 2.9 * MIB],
      [2.5 * MIB, 0.2 * MIB, 2.5 * MIB],
      [2 * MIB, 1.999 * MIB, 2 * MIB],
      [1_000, 10, 3 * MIB],
      [3 * MIB, 2.5 * MIB, MIB],
    ].map((sizes) => sizes.map(Math.floor)) as [number, number, number][]) {
      const before = linesOf([7, 31, 100_000, 1], counted);
      const index = new LineIndex();
      await countAll(index, before);
      const other = linesOf([3, 2_000, 57], 3 * MIB);
      const after = Buffer.concat([before.subarray(0, cut), other]).subarray(0, grown);
      await countAll(index, after);
      expect({ counted: index.counted, lines: index.lines }).toEqual({ counted: grown, lines: lineEnds(after) });
    }
  });

  it('counts anew what was taken back', async () => {
    const index = new LineIndex();
    await countAll(index, linesOf([9], 3 * MIB));
    const shorter = linesOf([19], MIB + MIB / 2);
    const mended = Buffer.concat([linesOf([9], MIB), shorter.subarray(MIB)]);
    await countAll(index, mended);
    expect(index.lines).toBe(lineEnds(mended));
    const longer = Buffer.concat([mended, Buffer.from('\n\n')]);
    await countAll(index, longer);
    expect(index.lines).toBe(lineEnds(longer));
  });

  it('is kept for the 64 contents that were requested last', () => {
    const indexes = new LineIndexes();
    const [first, second] = [indexes.of('0'), indexes.of('1')];
    for (let other = 2; other < 64; other++) indexes.of(String(other));
    expect(indexes.of('0')).toBe(first);
    indexes.of('64');
    expect([indexes.of('0') === first, indexes.of('1') === second]).toEqual([true, false]);
  });
});
