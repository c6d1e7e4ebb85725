/** The search: what a plain one over the whole text finds, however the content is sliced. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Refused } from '../../../src/http/refused.ts';
import {
  type ByteMatch,
  type ContentPattern,
  type PatternOptions,
  patternOf,
  searchForward,
} from '../../../src/view/content/search.ts';
import { numRuns } from '../../support/property-runs.ts';
import { sourceOf } from '../../support/view-models.ts';

const SLICE = 128 * 1024;
const PLAIN: PatternOptions = { text: '', matchCase: true, isExpression: false };
const pattern = (text: string, options: Partial<PatternOptions> = {}) => patternOf({ ...PLAIN, text, ...options });

async function all(bytes: Buffer, wanted: ContentPattern, start = 0): Promise<ByteMatch[]> {
  const found: ByteMatch[] = [];
  for await (const { matches } of searchForward(sourceOf(bytes), wanted, start)) found.push(...matches);
  return found;
}

/** Where a text stands in bytes, none within another. */
function plainly(bytes: Buffer, text: string): ByteMatch[] {
  const needle = Buffer.from(text);
  const found: ByteMatch[] = [];
  for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + needle.length))
    found.push([at, needle.length]);
  return found;
}

/** Needles around the edges of slices, in lines that are short, or longer than a slice. */
function haystack(needle: string, places: readonly number[], lineLength: number): Buffer {
  const bytes = Buffer.alloc(3 * SLICE, '.');
  for (let at = lineLength; at < bytes.length; at += lineLength + 1) bytes[at] = 0x0a;
  for (const place of places) bytes.write(needle, place % (bytes.length - 20));
  return bytes;
}

const nearEdges = fc.array(
  fc
    .tuple(fc.constantFrom(0, SLICE, 2 * SLICE, 3 * SLICE - 40), fc.integer({ min: -30, max: 30 }))
    .map(([edge, by]) => Math.max(0, edge + by)),
  { maxLength: 12 },
);
const needles = fc.constantFrom('abc', 'aa', 'a', 'žluť', '😀', '$1.(x');
const lineLengths = fc.constantFrom(7, 79, 1_000, SLICE - 5, SLICE, 4 * SLICE);

describe('a search', () => {
  it('forwards finds what is there, each once, and so does an expression', async () => {
    await fc.assert(
      fc.asyncProperty(needles, nearEdges, lineLengths, async (needle, places, lineLength) => {
        const bytes = haystack(needle, places, lineLength);
        expect(await all(bytes, pattern(needle))).toEqual(plainly(bytes, needle));
        const anyCase = pattern(needle.toUpperCase(), { matchCase: false });
        expect(await all(bytes, anyCase)).toEqual(plainly(bytes, needle));
        if (/[$]/.test(needle) || lineLength > 1_000) return;
        // Two that overlap would make bytes that are no text.
        const one = haystack(needle, places.slice(0, 1), lineLength);
        expect(await all(one, pattern(needle, { isExpression: true }))).toEqual(plainly(one, needle));
      }),
      numRuns(30),
    );
  });

  it('finds a text without regard to case, of any script', async () => {
    const bytes = Buffer.from('žluť straße σ');
    expect(await all(bytes, pattern('ŽLUŤ straße Σ', { matchCase: false }))).toEqual([[0, bytes.length]]);
  });

  it.each(['', 'a', 'ab', 'a\n', '\na', 'xxxxxxxa'])('looks through %j', async (text) => {
    const bytes = Buffer.from(text);
    expect(await all(bytes, pattern('a'))).toEqual(plainly(bytes, 'a'));
  });

  it('by an expression counts bytes, also in lines that are no text', async () => {
    const bytes = Buffer.concat([Buffer.from('žluť 12\n'), Buffer.from([0xff, 0xfe]), Buffer.from(' 34\nkůň 56')]);
    const found = await all(bytes, pattern('[0-9]+', { isExpression: true }));
    expect(found.map(([byte, length]) => bytes.toString('latin1', byte, byte + length))).toEqual(['12', '34', '56']);
  });

  it('by an expression for which V8 has no stack is refused, and is no failure of the view', async () => {
    const groups = pattern(`^${'('.repeat(120)}.${')'.repeat(120)}*x`, { isExpression: true });
    await expect(all(Buffer.alloc(SLICE, 'ab'), groups)).rejects.toThrow(Refused);
  });
});
