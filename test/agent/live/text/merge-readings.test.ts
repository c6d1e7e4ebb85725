import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { match } from '../../../../src/agent/live/match.ts';
import { merge } from '../../../../src/agent/live/text/merge-readings.ts';
import { Utf8Reading } from '../../../../src/agent/live/text/reading.ts';
import { characterStart } from '../../../../src/bytes.ts';
import { textOf } from '../../../support/drive.ts';
import { TEXT_ATOMS } from '../model/content.ts';

const text = fc
  .array(fc.constantFrom(...TEXT_ATOMS), { minLength: 1, maxLength: 900 })
  .map((atoms) => Buffer.concat([...atoms, ...atoms, Buffer.from('end')]));

/** What two readings, half a block apart, have together behind `position`. */
async function together(bytes: Buffer, later: Buffer, position: number): Promise<Buffer> {
  const from = characterStart(bytes, Math.min(512, position));
  const [left, right] = [new Utf8Reading(textOf(bytes, 0)), new Utf8Reading(textOf(later, from))];
  const known = { read: async (start: number, end: number) => bytes.subarray(start, end) };
  await match(left, known, { from: 0, to: position });
  await match(right, known, { from, to: position });
  const pieces: Buffer[] = [];
  // A buffer is used again for later bytes.
  for await (const piece of merge(left, right)) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}

describe('two readings', () => {
  test('are certain together, however many characters were cut', async () => {
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 0, max: 1_000 }), async (bytes, wanted) => {
        const position = characterStart(bytes, Math.min(wanted, bytes.length - 1));
        expect((await together(bytes, bytes, position)).toString()).toBe(bytes.toString('utf8', position));
      }),
    );
  });

  test('have what came between them', async () => {
    await fc.assert(
      fc.asyncProperty(text, fc.nat(), fc.nat(), async (bytes, growth, wanted) => {
        const before = bytes.subarray(0, bytes.length - (growth % 200));
        // Often near the end, where nothing may be left but a character that is cut.
        const position = characterStart(bytes, Math.max(0, before.length - 1 - (wanted % 20)));
        for (const from of [0, position]) {
          const found = await together(before, bytes, from);
          expect(bytes.subarray(from, from + found.length)).toEqual(found);
          expect(found.length).toBeGreaterThan(before.length - from - 4);
        }
      }),
    );
  });

  test.each(['é', '€', '🌡'])('have a character (%s) that the end of the file had cut, whole', async (character) => {
    for (let cut = 1; cut < Buffer.byteLength(character); cut++) {
      const start = Buffer.from(`${'x'.repeat(600)}`);
      const before = Buffer.concat([start, Buffer.from(character).subarray(0, cut)]);
      // The first reading has nothing left but that character.
      const found = await together(before, Buffer.from(`${start}${character} and more`), start.length);
      expect(found.toString()).toBe(character);
    }
  });

  test('are certain together across the windows in which they are read', async () => {
    const bytes = Buffer.from('krok 17: žluťoučký kůň — 日本語のログ 😀\n'.repeat(45_000));
    expect(bytes.length).toBeGreaterThan(2 * 1024 * 1024);
    const position = characterStart(bytes, 600);
    expect((await together(bytes, bytes, position)).equals(bytes.subarray(position))).toBe(true);
  });

  test('end at bytes that are none of UTF-8', async () => {
    const bytes = Buffer.concat([Buffer.from('é'.repeat(700)), Buffer.from([0xff]), Buffer.from('é'.repeat(700))]);
    expect((await together(bytes, bytes, 0)).toString()).toBe('é'.repeat(700));
  });

  test('end where they contradict each other', async () => {
    const [before, after] = [Buffer.from(`${'é'.repeat(700)}one`), Buffer.from(`${'é'.repeat(700)}two`)];
    expect((await together(before, after, 0)).toString()).toBe('é'.repeat(700));
  });
});
