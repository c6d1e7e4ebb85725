import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { agree, goesOnLike } from '../../../../src/agent/live/compare/alike.ts';
import { Utf8Reading } from '../../../../src/agent/live/text/reading.ts';
import type { DecodeBytesOptions } from '../../../support/decode-bytes.ts';
import { textOf } from '../../../support/drive.ts';
import { ALL_ATOMS, TEXT_ATOMS } from '../model/content.ts';

const reading = (bytes: Buffer, offset = 0, decoding: DecodeBytesOptions = {}) =>
  new Utf8Reading(textOf(bytes, offset, decoding));

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** How an answer from `later` goes on like one from `earlier` that was read up to the same place. */
function compare(bytes: Buffer, earlier: number, later: number, decoding: DecodeBytesOptions = {}) {
  return goesOnLike(reading(bytes, later, decoding), reading(bytes, earlier, decoding));
}

describe('a later answer', () => {
  test('goes on alike behind the replacement characters of both', async () => {
    const bytes = Buffer.concat([Buffer.alloc(9, 0xff), Buffer.from('and on')]);
    for (let later = 0; later <= 9; later++) expect(await compare(bytes, 0, later)).toBe('alike');
    expect(await compare(bytes, 0, 10)).toBeUndefined();
  });

  test('may begin with the character that a block edge had cut', async () => {
    const bytes = Buffer.from('€uro');
    expect(await compare(bytes, 1, 0)).toBe('earlier');
  });

  test('may lack the byte-order mark at which it was asked for', async () => {
    const bytes = hex('41 fe efbbbf 42 43 44');
    expect(await compare(bytes, 1, 2, { swallowBom: true })).toBe('unmarked');
    expect(await compare(bytes, 1, 1, { swallowBom: true })).toBe('alike');
  });

  test('is not taken for another because undecodable bytes stand between byte-order marks', async () => {
    const bytes = hex('41 e282 e282 e282 e282 efbbbf fe efbbbf efbbbf efbfbd 41 efbfbd efbfbd 41');
    expect(await compare(bytes, 1, 9, { swallowBom: true })).toBe('unmarked');
    expect(await compare(bytes, 1, 8, { swallowBom: true })).toBe('alike');
  });

  test('of a file that is another by now does not go on alike', async () => {
    expect(await goesOnLike(reading(Buffer.from('other')), reading(Buffer.from('text')))).toBeUndefined();
    // Where the earlier one ends in undecodable bytes, nothing shows whether it is still the same file.
    const ended = reading(hex('fe fe fe'));
    expect(await goesOnLike(reading(hex('fe fe fe 42')), ended)).toBeUndefined();
    expect(await goesOnLike(reading(hex('fe fe')), ended)).toBe('alike');
  });

  test('that ends before the earlier one does not go on alike', async () => {
    expect(await goesOnLike(reading(Buffer.from('te')), reading(Buffer.from('text')))).toBeUndefined();
    expect(await goesOnLike(reading(Buffer.from('text')), reading(Buffer.from('te')))).toBe('alike');
  });
});

describe('two readings of one file', () => {
  const text = fc
    .array(fc.constantFrom(...TEXT_ATOMS), { minLength: 600, maxLength: 900 })
    .map((atoms) => Buffer.concat(atoms));
  const all = fc
    .array(fc.constantFrom(...ALL_ATOMS), { minLength: 1, maxLength: 30 })
    .map((atoms) => Buffer.concat(atoms));

  test('agree to their end, wherever block edges cut characters', async () => {
    await fc.assert(
      fc.asyncProperty(text, async (bytes) => {
        const whole = Buffer.concat([Buffer.alloc(512, 'x'), bytes, Buffer.from('end')]);
        const [left, right] = [reading(whole), reading(whole, 512)];
        left.advance(512);
        expect((await agree(left, right, Number.POSITIVE_INFINITY)).end).toBe('both');
      }),
    );
  });

  test('agree as far as they were asked to, or up to undecodable bytes', async () => {
    await fc.assert(
      fc.asyncProperty(all, fc.nat(40), async (bytes, enough) => {
        const { end, bytes: agreed } = await agree(reading(bytes), reading(bytes), enough);
        expect(['enough', 'both', 'uncertain']).toContain(end);
        expect(agreed).toBeLessThanOrEqual(enough);
      }),
    );
  });
});
