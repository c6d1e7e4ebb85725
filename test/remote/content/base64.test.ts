/** base64 in pieces as large as the decoder works on at once, and larger ones. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Base64Decoder } from '../../../src/remote/content/chunks.ts';
import { numRuns } from '../../support/property-runs.ts';

/** Characters that are decoded at once. */
const SLICE = 32 * 1024;
/** Places near the edges of slices. */
const nearEdge = fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: -4, max: 4 })).map(([slice, more]) => {
  return Math.max(0, slice * SLICE + more);
});

/** Different from place to place, so that no byte can stand for another. */
const bytesOf = (length: number) =>
  Buffer.from(
    Uint32Array.from({ length: Math.ceil(length / 4) }, (_, index) => Math.imul(index, 2_654_435_761)).buffer,
  ).subarray(0, length);

const document = fc
  .record({
    characters: nearEdge,
    cutOff: fc.nat(2),
    /** White space, and where it stands. */
    spaces: fc.array(fc.tuple(nearEdge, fc.constantFrom(' ', '\n', '\r\n', '\t \n')), { maxLength: 4 }),
    /** Every so many characters, as many servers write it. */
    lineLength: fc.constantFrom(0, 0, 64, 76),
  })
  .map(({ characters, cutOff, spaces, lineLength }) => {
    const bytes = bytesOf(Math.max(0, (characters * 3) / 4 - cutOff));
    let text = bytes.toString('base64');
    if (lineLength > 0) text = text.replace(new RegExp(`.{${lineLength}}`, 'g'), '$&\r\n');
    for (const [at, space] of spaces) text = text.slice(0, at) + space + text.slice(at);
    return { bytes, text };
  });

function decode(text: string, cuts: readonly number[]): Buffer {
  const decoder = new Base64Decoder();
  const characters = Buffer.from(text, 'latin1');
  const edges = [0, ...cuts.filter((cut) => cut < characters.length).sort((a, b) => a - b), characters.length];
  const decoded = edges.slice(1).map((end, index) => Buffer.from(decoder.push(characters.subarray(edges[index], end))));
  decoder.finish();
  return Buffer.concat(decoded);
}

test('a text longer than what is decoded at once comes whole, or is refused for a character, wherever pieces end', () => {
  const places = fc.array(nearEdge, { maxLength: 4 });
  const wrong = fc.constantFrom('-', '_', '=', '!', '\u00e9', '\0');
  fc.assert(
    fc.property(document, places, nearEdge, wrong, ({ bytes, text }, cuts, place, character) => {
      // Not `toEqual`, which would compare them byte by byte in its own slow way.
      expect(decode(text, cuts).equals(bytes)).toBe(true);
      // Behind it there is more, so that a `=` is no padding.
      const damaged = `${text.slice(0, place)}${character}${text.slice(place)}AAAA`;
      expect(() => decode(damaged, cuts)).toThrow(expect.objectContaining({ code: 'malformed' }));
    }),
    numRuns(500),
  );
});
