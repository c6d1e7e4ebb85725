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

  it('counts anew what became shorter', async () => {
    const index = new LineIndex();
    await countAll(index, linesOf([9], 3 * MIB));
    const shorter = Buffer.concat([linesOf([9], MIB), linesOf([19], MIB / 2)]);
    for (const bytes of [shorter, Buffer.concat([shorter, Buffer.from('\n\n')])]) {
      await countAll(index, bytes);
      expect({ counted: index.counted, lines: index.lines }).toEqual({ counted: bytes.length, lines: lineEnds(bytes) });
    }
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
