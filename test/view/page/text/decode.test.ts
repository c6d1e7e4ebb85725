import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decode, undecodableByte } from '../../../../src/view/page/text/terminal.ts';
import { numRuns } from '../../../support/property-runs.ts';

/** The bytes that a decoded text was made of. */
const bytesOf = (text: string) =>
  Buffer.concat(
    [...text].map((character) => {
      const byte = undecodableByte(character);
      return byte === undefined ? Buffer.from(character) : Buffer.of(byte);
    }),
  );

describe('decoded text', () => {
  it('is that of UTF-8, with a genuine U+FFFD and a byte-order mark', () => {
    const text = '\ufeffPříliš 計算 👩🏽‍🔬 \ufffd \u0000';
    expect(decode(Buffer.from(text))).toBe(text);
  });

  it.each([
    ['a byte alone', [0xff], '\udcff'],
    ['a character that breaks off', [0x61, 0xe2, 0x82, 0x62], 'a\udce2\udc82b'],
    ['an overlong form', [0xc0, 0xaf], '\udcc0\udcaf'],
    ['half a surrogate pair', [0xed, 0xa0, 0x80], '\udced\udca0\udc80'],
    ['what lies beyond Unicode', [0xf4, 0x90, 0x80, 0x80], '\udcf4\udc90\udc80\udc80'],
  ])('says which bytes are none: %s', (_, bytes, text) => {
    expect(decode(Uint8Array.from(bytes))).toBe(text);
  });

  it('holds every byte', () => {
    const byte = fc.oneof(
      fc.nat(255),
      fc.constantFrom(0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0xef, 0xbf, 0xbd),
    );
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 40 }), (bytes) => {
        expect([...bytesOf(decode(Uint8Array.from(bytes)))]).toEqual(bytes);
      }),
      numRuns(500),
    );
  });
});
