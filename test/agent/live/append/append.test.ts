import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { appendBoth } from '../../../../src/agent/live/append/append.ts';
import { match } from '../../../../src/agent/live/match.ts';
import type { Response } from '../../../../src/agent/live/steps.ts';
import { Reading } from '../../../../src/agent/live/text/reading.ts';
import { characterStart } from '../../../../src/bytes.ts';
import { textOf } from '../../../support/drive.ts';
import { LivePlace } from '../../../support/live-place.ts';
import { TEXT_ATOMS } from '../model/content.ts';

const text = fc
  .array(fc.constantFrom(...TEXT_ATOMS), { minLength: 1, maxLength: 900 })
  .map((atoms) => Buffer.concat([...atoms, ...atoms, Buffer.from('end')]));

/** A response from `offset` on, whose cursor is at `position`. */
async function responseOf(bytes: Buffer, offset: number, position: number): Promise<Response> {
  const content = textOf(bytes, offset);
  const reading = new Reading(content);
  const read = async (start: number, end: number) => bytes.subarray(start, end);
  await match(reading, { read }, { from: offset, to: position });
  return { offset, content, reading };
}

/** What is appended to a mirror of `position` bytes by two responses, half a block apart. */
async function together(bytes: Buffer, later: Buffer, position: number): Promise<Buffer> {
  const place = new LivePlace();
  const offset = characterStart(bytes, Math.min(512, position));
  await place.during(async (file) => {
    await file.append(bytes.subarray(0, position));
    const before = await responseOf(bytes, 0, position);
    await appendBoth(file, before, await responseOf(later, offset, position));
  });
  return Buffer.from(place.read() ?? '', 'latin1').subarray(position);
}

describe('two responses', () => {
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
      // The first response has nothing left but that character.
      const found = await together(before, Buffer.from(`${start}${character} and more`), start.length);
      expect(found.toString().startsWith(character)).toBe(true);
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

  test('append nothing that they contradict', async () => {
    const [before, after] = [Buffer.from(`${'é'.repeat(700)}one`), Buffer.from(`${'é'.repeat(700)}two`)];
    const found = (await together(before, after, 0)).toString();
    expect('é'.repeat(700).startsWith(found)).toBe(true);
  });
});
