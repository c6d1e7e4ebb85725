import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mayShowSameBytes } from '../../../../src/agent/live/compare/same-bytes.ts';
import { Utf8Reading } from '../../../../src/agent/live/text/reading.ts';
import { textOf } from '../../../support/drive.ts';
import { numRuns } from '../../../support/property-runs.ts';
import { ALL_ATOMS } from '../model/content.ts';

/** The answer of a service that decodes blocks, asked from `offset` on. */
const answer = (bytes: Buffer, offset = 0) => ({
  answer: { offset, reading: new Utf8Reading(textOf(bytes, offset)) },
  at: offset,
});

const atoms = fc.array(fc.constantFrom(...ALL_ATOMS), { maxLength: 12 }).map(Buffer.concat);

describe('two answers', () => {
  test('show the same bytes, wherever block edges cut characters of either', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 990, max: 1030 }),
        fc.constantFrom('ff', 'efbfbd', 'e282', 'f09f98'),
        fc.nat(12),
        atoms,
        async (length, hex, later, behind) => {
          const many = Buffer.alloc(length, Buffer.from(hex, 'hex'));
          const bytes = Buffer.concat([many, Buffer.from('A'), behind, Buffer.from('the end')]);
          expect(await mayShowSameBytes(answer(bytes, later), answer(bytes))).toBe(true);
          expect(await mayShowSameBytes(answer(bytes), answer(bytes, later))).toBe(true);
        },
      ),
      numRuns(300),
    );
  });

  test('do not, where a character is another one, or one that no block edge could cut', async () => {
    const one = Buffer.concat([Buffer.alloc(9, 0xff), Buffer.from('A€B')]);
    expect(await mayShowSameBytes(answer(one, 2), answer(one))).toBe(true);
    for (const other of ['A日B', 'A€C', 'AB', '€B', 'A€', 'A'])
      expect(
        await mayShowSameBytes(answer(Buffer.concat([Buffer.alloc(9, 0xff), Buffer.from(other)])), answer(one)),
        other,
      ).toBe(false);
    const undecodable = Buffer.concat([
      Buffer.alloc(9, 0xff),
      Buffer.from('A'),
      Buffer.alloc(2, 0xff),
      Buffer.from('B'),
    ]);
    expect(await mayShowSameBytes(answer(undecodable), answer(one))).toBe(false);
  });

  test('do as far as the earlier one had come, unless it ends in bytes that it could not decode', async () => {
    const bytes = Buffer.concat([Buffer.alloc(9, 0xff), Buffer.from('text')]);
    expect(await mayShowSameBytes(answer(bytes), answer(bytes.subarray(0, 11)))).toBe(true);
    expect(await mayShowSameBytes(answer(bytes.subarray(0, 11)), answer(bytes))).toBe(false);
    expect(await mayShowSameBytes(answer(bytes), answer(bytes.subarray(0, 9)))).toBe(false);
  });

  test('are compared as far as both are in sight, however long they are', async () => {
    const long = Buffer.concat([Buffer.alloc(3_000_000, 0xff), Buffer.from('A'), Buffer.alloc(5_000, 'text')]);
    expect(await mayShowSameBytes(answer(long, 5), answer(long))).toBe(true);
  });
});
