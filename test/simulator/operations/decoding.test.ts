import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodeBlocks } from '../../../simulator/operations/decoding.ts';
import { decodeBytes } from '../../support/model-remote.ts';
import { anyCharacter } from '../../support/property-runs.ts';

const fileBytes = fc.oneof(
  fc.uint8Array({ maxLength: 5000 }).map((bytes) => Buffer.from(bytes)),
  fc.string({ unit: anyCharacter, maxLength: 3000 }).map((text) => Buffer.from(text)),
);

it.each([
  ['e0807a', 1, 2],
  ['e08080', 2, 3],
  ['eda080', 2, 3],
  ['f08f80', 2, 3],
  ['f4908080', 3, 4],
  ['8041f080', 2, 3],
  ['f09080', 1, 1],
  ['f5808080', 4, 4],
  ['c080', 2, 2],
])('of %s, %i U+FFFD are made on the older runtime, %i on the others', (hex, ...counts) => {
  const decoded = [true, false].map((olderRuntime) => decodeBytes(Buffer.from(hex, 'hex'), 0, { olderRuntime }));
  expect(decoded.map((text) => text.match(/\ufffd/g)?.length)).toEqual(counts);
});

it('decodeBlocks is decodeBytes for a file that arrives in reads', async () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 2500 }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(fileBytes, cuts, fc.boolean(), async (bytes, readLengths, swallowBom) => {
      const reads: Buffer[] = [];
      let position = 0;
      for (const length of [...readLengths, bytes.length]) {
        reads.push(bytes.subarray(position, position + length));
        position += length;
      }
      const pieces: string[] = [];
      for await (const piece of decodeBlocks(reads, { swallowBom })) pieces.push(piece);
      expect(pieces.join('')).toBe(decodeBytes(bytes, 0, { readLengths, swallowBom }));
    }),
  );
});
