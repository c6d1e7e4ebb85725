import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Bytes, match } from '../../../src/agent/live/match.ts';
import { Reading } from '../../../src/agent/live/text/reading.ts';
import { textOf } from '../../support/drive.ts';
import { MemoryContent } from '../../support/memory-content.ts';
import { ALL_ATOMS } from './model/content.ts';

/** Content in which every run of atoms ends in a letter: what is skipped ends within a few bytes. */
const content = fc
  .array(fc.tuple(fc.array(fc.constantFrom(...ALL_ATOMS), { maxLength: 5 }), fc.constantFrom('A', 'B', 'C')), {
    minLength: 1,
    maxLength: 400,
  })
  .map((runs) => Buffer.concat(runs.flatMap(([atoms, letter]) => [...atoms, Buffer.from(letter)])));

const bytesOf = (bytes: Buffer): Bytes => ({ read: async (start, end) => bytes.subarray(start, end) });

async function compare(remote: Buffer, mirror: Buffer, from = 0) {
  const skipped: [number, number][] = [];
  const reading = new Reading(textOf(remote, from));
  const found = await match(reading, bytesOf(mirror), { from, to: mirror.length }, (...stretch) =>
    skipped.push(stretch),
  );
  return { found, skipped, reading };
}

describe('match', () => {
  test('of text of which only ASCII counts stands right behind the mirror, known or not, before ASCII', async () => {
    await fc.assert(
      fc.asyncProperty(content, fc.nat(), fc.nat(), async (bytes, end, unknownFrom) => {
        const length = 1 + bytes.subarray(0, end % bytes.length).findLastIndex((byte) => byte < 0x80);
        const shown = bytes.toString('latin1');
        const isUnknown = (at: number) => at >= unknownFrom % (length + 1) && (bytes[at] ?? 0) >= 0x80;
        const mirror = bytes.subarray(0, length).map((byte, at) => (isUnknown(at) ? 0xff : byte));
        const unknownUntil = (at: number) => (isUnknown(at) ? at + 1 : undefined);
        const reading = new Reading(new MemoryContent(Buffer.from(shown)), true);
        const there = { ...bytesOf(Buffer.from(mirror)), unknownUntil };
        expect(await match(reading, there, { from: 0, to: length })).toEqual({ kind: 'same', at: length, open: false });
        expect((await reading.text(9_999)).toString()).toBe(shown.slice(length));
      }),
    );
  });

  test('skips what the text shows in place of bytes that were substituted', async () => {
    const unknownUntil = (at: number) => (at >= 1 && at < 4 ? 4 : undefined);
    const there = { ...bytesOf(Buffer.from('A\xff\xff\xffB', 'latin1')), unknownUntil };
    const skipped: [number, number][] = [];
    const reading = new Reading(new MemoryContent(Buffer.from('AéxB, and on')));
    const found = await match(reading, there, { from: 0, to: 5 }, (...stretch) => skipped.push(stretch));
    expect([found, skipped]).toEqual([{ kind: 'same', at: 5, open: false }, [[1, 4]]]);
    expect((await reading.text(99)).toString()).toBe(', and on');
  });

  test.each([
    ['another character after them', 'A\ufffdB, and on'],
    ['more U+FFFD than there are bytes', 'A\ufffd\ufffdC, and on'],
  ])('is contradicted after bytes that were substituted by %s', async (_, text) => {
    const unknownUntil = (at: number) => (at === 1 ? 2 : undefined);
    const there = { ...bytesOf(Buffer.from('A\xf8C', 'latin1')), unknownUntil };
    const found = await match(new Reading(new MemoryContent(Buffer.from(text))), there, { from: 0, to: 3 });
    expect(found).toEqual({ kind: 'different', at: 1 });
  });

  test('a long undecodable run is counted the same where a sequence crosses the look-ahead window', async () => {
    for (const before of [4_092, 4_093, 4_094, 4_095]) {
      // Two bytes that are one sequence: one U+FFFD for both.
      const bytes = Buffer.concat([
        Buffer.alloc(before, 0xff),
        Buffer.from([0xe2, 0x82]),
        Buffer.alloc(700, 0xff),
        Buffer.from('AB'),
      ]);
      const { found, reading } = await compare(bytes, bytes.subarray(0, -1));
      expect(found).toEqual({ kind: 'same', at: bytes.length - 1, open: false });
      expect((await reading.text(9)).toString()).toBe('B');
    }
  });

  test('a character across the edge of the look-ahead window ends an undecodable run', async () => {
    for (const before of [4_094, 4_095]) {
      const characters = Buffer.from(`${'é'.repeat(40)}XYZ`);
      // The window is not that of the blocks of the server.
      const bytes = Buffer.concat([Buffer.from('beginning '), Buffer.alloc(before, 0xff), characters]);
      const { found, reading } = await compare(bytes, bytes.subarray(0, -1));
      expect(found).toEqual({ kind: 'same', at: bytes.length - 1, open: false });
      expect((await reading.text(9)).toString()).toBe('Z');
    }
  });

  test('finds every beginning of a file to be the same, from every offset', async () => {
    await fc.assert(
      fc.asyncProperty(content, fc.nat(), fc.nat(), async (bytes, start, end) => {
        const length = end % (bytes.length + 1);
        const { found } = await compare(bytes, bytes.subarray(0, length), start % (length + 1));
        expect(found.kind).toBe('same');
      }),
      // One U+FFFD for two bytes, then a part of a character.
      { examples: [[Buffer.from('A\xef\xbb\xe2\x82\xacB', 'latin1'), 0, 5]] },
    );
  });

  test('finds that the text ends within the last character of the mirror', async () => {
    const { found } = await compare(Buffer.from('A\xc3', 'latin1'), Buffer.from('Aé'));
    expect(found).toEqual({ kind: 'shorter', at: 1 });
  });

  test('stands right behind the mirror if it says so', async () => {
    await fc.assert(
      fc.asyncProperty(content, fc.nat(), async (bytes, end) => {
        const length = end % (bytes.length + 1);
        const { found, reading } = await compare(bytes, bytes.subarray(0, length));
        if (found.kind !== 'same' || found.open) return;
        const rest = await reading.peek(1_000);
        expect(rest).toEqual(bytes.subarray(length, length + rest.length));
      }),
    );
  });

  test('returns what it skipped: everything else was compared', async () => {
    await fc.assert(
      fc.asyncProperty(content, fc.nat(), fc.integer({ min: 1, max: 255 }), async (bytes, where, change) => {
        const index = where % bytes.length;
        const changed = Buffer.from(bytes);
        changed[index] = (changed[index] ?? 0) ^ change;
        const { found, skipped } = await compare(bytes, changed);
        // Up to where it came, each byte was compared or reported to be skipped.
        const isSkipped = skipped.some(([start, end]) => start <= index && index < end);
        // Behind a stretch whose width cannot be reported, a reading that ended or differs stands where it seems to.
        const isCertain = skipped.every(([, end]) => end > index);
        const isReached = found.kind === 'same' || (found.at > index && isCertain);
        expect(isReached && !isSkipped).toBe(false);
      }),
      // U+FFFD for three bytes, of which the mirror has one, then what follows them: the reading ends there.
      { examples: [[Buffer.from('A\r\n\ufffdB'), 4, 0xfd]] },
    );
  });

  test('finds a file that ends before its mirror', async () => {
    await fc.assert(
      fc.asyncProperty(content, fc.nat(), async (bytes, end) => {
        const length = end % bytes.length;
        const { found } = await compare(bytes.subarray(0, length), bytes);
        expect(found.kind).not.toBe('different');
        // Where it ends in an undecodable sequence, the bytes of the mirror say how long that is.
        if (found.kind === 'shorter') expect(found.at).toBeLessThanOrEqual(length + 3);
        // At most the last undecodable bytes leave it open.
        else expect(bytes.length - length).toBeLessThan(3);
      }),
    );
  });

  test('skips a long stretch of undecodable bytes', async () => {
    const bytes = Buffer.concat([Buffer.from('a'), Buffer.alloc(300_000, 0xff), Buffer.from('end')]);
    expect((await compare(bytes, bytes)).found).toEqual({ kind: 'same', at: bytes.length, open: false });
    expect((await compare(bytes, bytes)).skipped).toEqual([[1, 300_001]]);
    // How many U+FFFD stand for them proves nothing, within bounds.
    const shorter = Buffer.concat([Buffer.from('a'), Buffer.alloc(90_000, 0xff), Buffer.from('end')]);
    expect((await compare(bytes, shorter)).found).toEqual({ kind: 'different', at: 1 });
  });

  test('takes no ASCII for an undecodable byte', async () => {
    expect((await compare(Buffer.from('a\xffb', 'latin1'), Buffer.from('a?b'))).found).toEqual({
      kind: 'different',
      at: 1,
    });
  });
});
