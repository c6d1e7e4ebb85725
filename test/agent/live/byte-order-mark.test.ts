import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findMark, Marked } from '../../../src/agent/live/byte-order-mark.ts';
import { TextEncoding } from '../../../src/agent/live/encoding.ts';
import { BYTE_ORDER_MARK } from '../../../src/chunk.ts';
import { drive, textOf } from '../../support/drive.ts';
import { MemoryContent } from '../../support/memory-content.ts';
import { numRuns } from '../../support/property-runs.ts';
import { ALL_ATOMS } from '../model/content.ts';

const runs = fc.array(
  fc.tuple(fc.constantFrom(...ALL_ATOMS), fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 900 }))),
  { maxLength: 5 },
);
const content = runs.map((each) => Buffer.concat(each.flatMap(([atom, times]) => Array<Buffer>(times).fill(atom))));

async function find(bytes: Buffer, swallowBom: boolean) {
  const habits = new Map<string, string>();
  const encoding = new TextEncoding('auto', {
    get: (name) => habits.get(name),
    set: (name, to) => habits.set(name, to),
  });
  const asked: number[] = [];
  const decoding = { swallowBom };
  const { mark } = await drive(findMark(textOf(bytes, 0, decoding), encoding), bytes, decoding, asked);
  return { mark, asked, habits };
}

const isMarked = (bytes: Buffer) => bytes.subarray(0, 3).equals(BYTE_ORDER_MARK);

describe('a byte-order mark that is swallowed', () => {
  test('is found whatever follows it, and only then', async () => {
    await fc.assert(
      fc.asyncProperty(content, fc.boolean(), fc.boolean(), async (rest, marked, swallowBom) => {
        const bytes = marked ? Buffer.concat([BYTE_ORDER_MARK, rest]) : rest;
        // Before undecodable bytes it does not matter.
        const behindMark = isMarked(bytes) ? bytes.subarray(3) : bytes;
        fc.pre(!behindMark.toString().startsWith('\ufffd'));
        // As many of one character as are compared, then undecodable bytes: no text can tell (docs/guarantees.md).
        fc.pre(!/^(.)\1{157}[^\ufffd]*\ufffd/u.test(behindMark.toString()));
        const { mark, asked } = await find(bytes, swallowBom);
        expect(mark).toBe(swallowBom && isMarked(bytes) ? 'swallowed' : 'none');
        expect(asked.length).toBeLessThanOrEqual(2);
      }),
      numRuns(500),
    );
  });

  test.each([
    ['ASCII', Buffer.from('line of a log\n'.repeat(20_000))],
    ['one byte again and again', Buffer.alloc(200_000, 'x')],
    ['one character again and again', Buffer.from('日'.repeat(90_000))],
    ['characters of two bytes', Buffer.from('Příliš žluťoučký kůň '.repeat(9_000))],
    ['characters of four bytes', Buffer.from('𝄞𝄢'.repeat(30_000))],
    ['undecodable bytes behind one character', Buffer.alloc(200_000, 0xff).fill('x', 0, 1)],
    ['byte-order marks', Buffer.from(`x${'\ufeff'.repeat(90_000)}`)],
    ['few byte-order marks', Buffer.from(`x${'\ufeff'.repeat(378)}`)],
    ['the same few bytes', Buffer.alloc(6_001, Buffer.from('x\xff\xff', 'latin1'))],
  ])('is found before a long text of %s', async (_, rest) => {
    for (const swallowBom of [true, false]) {
      expect((await find(rest, swallowBom)).mark).toBe('none');
      const marked = Buffer.concat([BYTE_ORDER_MARK, rest]);
      expect((await find(marked, swallowBom)).mark).toBe(swallowBom ? 'swallowed' : 'none');
    }
  });

  test('once it was seen, is never looked for again', async () => {
    expect((await find(Buffer.from('\ufefftext'), false)).habits.get('byte-order-mark')).toBe('kept');
    expect((await find(Buffer.from('\ufefftext'), true)).habits.get('byte-order-mark')).toBe('swallowed');
  });

  test('is put back before the text', async () => {
    const marked = new Marked(new MemoryContent(Buffer.from('text')));
    expect(marked.length).toBe(7);
    const whole = Buffer.from('\ufefftext');
    for (let start = 0; start <= 7; start++)
      for (let end = start; end <= 8; end++) expect(await marked.read(start, end)).toEqual(whole.subarray(start, end));
  });
});
