import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fewestReplacements } from '../../../../src/agent/live/compare/replacements.ts';
import { REPLACEMENT } from '../../../../src/bytes.ts';
import { decodeBytes } from '../../../support/decode-bytes.ts';
import { numRuns } from '../../../support/property-runs.ts';
import { ALL_ATOMS } from '../model/content.ts';

const fewest = (hex: string) => fewestReplacements(Buffer.from(hex.replaceAll(' ', ''), 'hex'));

describe('the fewest replacement characters for', () => {
  test.each([
    ['nothing', '', 0],
    ['a byte that begins no character', '80', 1],
    ['each beginning of a character that does not go on', 'e282 c3 f09f98 80', 4],
    ['a character that a block edge cut', 'cc81', 2],
    ['a beginning at the end, which may go on', 'c3 e282', 1],
    ['U+FFFD itself, and what no XML can hold', 'efbfbd efbfbe efbfbf', 3],
    ['a surrogate, which some take for one', 'eda080', 1],
    ['bytes that are not known, of which three may be one', 'ffffff ffffff ff', 2],
  ])('%s', (_, hex, count) => {
    expect(fewest(hex)).toBe(count);
  });

  test('a stretch are never more than a service shows for it, wherever its blocks end', () => {
    const atoms = fc.array(fc.constantFrom(...ALL_ATOMS.filter(([byte = 0]) => byte >= 0x80)), { maxLength: 6 });
    fc.assert(
      fc.property(atoms, fc.integer({ min: 1, max: 9 }), (parts, blockBytes) => {
        const bytes = Buffer.concat(parts);
        // A short read makes a short block.
        const readLengths = bytes.map(() => blockBytes);
        const text = Buffer.from(decodeBytes(bytes, 0, { readLengths }));
        const replaced = text.length / REPLACEMENT.length;
        // Only where nothing else is shown.
        fc.pre(text.equals(Buffer.alloc(text.length, REPLACEMENT)));
        expect(fewestReplacements(bytes)).toBeLessThanOrEqual(replaced);
        for (let end = 0; end < bytes.length; end++)
          expect(fewestReplacements(bytes.subarray(0, end))).toBeLessThanOrEqual(replaced);
      }),
      numRuns(2_000),
    );
  });
});
