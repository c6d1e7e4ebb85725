import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeBlocks } from '../../../simulator/operations/decoding.ts';
import { anyCharacter } from '../../support/any-character.ts';
import { decodeBytes } from '../../support/decode-bytes.ts';

/** The rule of docs/dev/servers.md 1.2, written down a second time. */
function expected(bytes: Buffer, offset: number, readLengths: readonly number[]): string {
  let text = '';
  let rest = bytes.subarray(offset);
  for (const length of [...readLengths, Number.POSITIVE_INFINITY]) {
    let read = rest.subarray(0, length);
    rest = rest.subarray(length);
    while (read.length > 0) {
      text += new TextDecoder('utf-8', { ignoreBOM: true }).decode(read.subarray(0, 1024));
      read = read.subarray(1024);
    }
  }
  return text;
}

const fileBytes = fc.oneof(
  fc.uint8Array({ maxLength: 5000 }).map((bytes) => Buffer.from(bytes)),
  fc.string({ unit: anyCharacter, maxLength: 3000 }).map((text) => Buffer.from(text)),
);

describe('decodeBytes', () => {
  it('keeps a byte-order mark, or swallows it at the offset only', () => {
    const bytes = Buffer.from('\ufeffa\ufeffb');
    expect(decodeBytes(bytes, 0)).toBe('\ufeffa\ufeffb');
    expect(decodeBytes(bytes, 0, { swallowBom: true })).toBe('a\ufeffb');
    expect(decodeBytes(bytes, 4, { swallowBom: true })).toBe('b');
    expect(decodeBytes(bytes, 3, { swallowBom: true })).toBe('a\ufeffb');
  });

  it('makes one character of every byte where it decodes otherwise', () => {
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const text = decodeBytes(all, 0, { latin1: true });
    expect(text).toBe(String.fromCharCode(...all));
  });

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
  ])('makes of %s %i U+FFFD on the older runtime, %i on the others', (hex, older, others) => {
    const count = (olderRuntime: boolean) =>
      decodeBytes(Buffer.from(hex, 'hex'), 0, { olderRuntime }).match(/\ufffd/g)?.length;
    expect([count(true), count(false)]).toEqual([older, others]);
  });

  it('follows the rule for any bytes, offset and reads', () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 2500 }), { maxLength: 6 });
    fc.assert(
      fc.property(fileBytes, fc.nat(5000), lengths, (bytes, offset, readLengths) => {
        expect(decodeBytes(bytes, offset, { readLengths })).toBe(expected(bytes, offset, readLengths));
      }),
    );
  });
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
