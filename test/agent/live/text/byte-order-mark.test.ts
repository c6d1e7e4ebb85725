import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { wholeText } from '../../../../src/agent/live/text/byte-order-mark.ts';
import { withMark } from '../../../../src/agent/live/text/reading.ts';
import { BYTE_ORDER_MARK } from '../../../../src/bytes.ts';
import type { DecodeBytesOptions } from '../../../support/decode-bytes.ts';
import { partsOf, textOf } from '../../../support/drive.ts';
import { MemoryContent } from '../../../support/memory-content.ts';
import { numRuns } from '../../../support/property-runs.ts';
import { ALL_ATOMS } from '../model/content.ts';

const runs = fc.array(
  fc.tuple(fc.constantFrom(...ALL_ATOMS), fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 900 }))),
  { maxLength: 5 },
);
const content = runs.map((each) => Buffer.concat(each.flatMap(([atom, times]) => Array<Buffer>(times).fill(atom))));
/** Whether a mark is found to be missing in a text from the start of a file. */
async function find(bytes: Buffer, decoding: DecodeBytesOptions, at: (question: number) => Buffer = () => bytes) {
  const asked: number[] = [];
  const text = textOf(bytes, 0, decoding);
  const whole = await wholeText(0, text, partsOf(at, decoding, asked));
  return { mark: whole === undefined ? 'again' : whole === text ? 'none' : 'efbbbf', asked };
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
        const { mark, asked } = await find(bytes, { swallowBom });
        // Of one character of three bytes again and again, nothing tells: the raw bytes decide (src/agent/live/follow.ts).
        if (mark !== 'again') expect(mark).toBe(swallowBom && isMarked(bytes) ? 'efbbbf' : 'none');
        if (!/^\ufeff?(.)(\1|\ufffd|$)/su.test(bytes.toString())) expect(mark).not.toBe('again');
        expect(asked.length).toBeLessThanOrEqual(3);
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
    ['one character, and undecodable bytes', Buffer.from(`${'e282ac'.repeat(271)}${'efbf'.repeat(103)}efbbbf`, 'hex')],
    ['the same few bytes', Buffer.alloc(6_001, Buffer.from('x\xff\xff', 'latin1'))],
  ])('is found before a long text of %s', async (what, rest) => {
    const isRepeated = [
      'one character again and again',
      'undecodable bytes behind one character',
      'one character, and undecodable bytes',
      'the same few bytes',
    ].includes(what);
    for (const decoding of [{ swallowBom: true }, { swallowBom: false }, { stream: true }]) {
      // Nothing tells of what repeats itself: the raw bytes decide (src/agent/live/follow.ts).
      const undecided = isRepeated ? ['again'] : [];
      expect(['none', ...undecided]).toContain((await find(rest, decoding)).mark);
      const marked = Buffer.concat([BYTE_ORDER_MARK, rest]);
      const isSwallowed = decoding.swallowBom !== false;
      expect([isSwallowed ? 'efbbbf' : 'none', ...undecided]).toContain((await find(marked, decoding)).mark);
    }
  });

  test.each([
    ['fffe', 'utf16le'],
    ['feff', 'utf16be'],
  ])(
    'of UTF-16 (%s) is left to the raw bytes where the service decodes the text behind it so',
    async (mark, encoding) => {
      for (const text of ['a', 'line of a log\n', 'žluťoučký kůň\n'.repeat(300), '日本語', '𝄞 clef', 'abc\0def']) {
        const little = Buffer.from(text, 'utf16le');
        const bytes = Buffer.concat([Buffer.from(mark, 'hex'), encoding === 'utf16le' ? little : little.swap16()]);
        expect((await find(bytes, { stream: true })).mark).toBe('again');
        // A service that decodes blocks shows it as what it is there: undecodable.
        expect((await find(bytes, {})).mark).toBe('none');
      }
    },
  );

  test('is never made up because the file changed meanwhile, but by what stands there then', async () => {
    const change = fc.record({ call: fc.nat(2), to: content, share: fc.nat(100) });
    await fc.assert(
      fc.asyncProperty(content, change, fc.boolean(), async (rest, { call, to, share }, stream) => {
        const before = Buffer.concat([Buffer.from('A'), rest]);
        const after = Buffer.concat([
          before.subarray(0, Math.floor((share / 100) * before.length)),
          Buffer.from('B'),
          to,
        ]);
        const { mark } = await find(before, { stream }, (question) => (question < call ? before : after));
        expect(['none', 'again']).toContain(mark);
      }),
      numRuns(1_000),
    );
  });

  test('is put back before the text', async () => {
    const marked = withMark(new MemoryContent(Buffer.from('text')));
    expect(marked.length).toBe(7);
    const whole = Buffer.from('\ufefftext');
    for (let start = 0; start <= 7; start++)
      for (let end = start; end <= 8; end++) expect(await marked.read(start, end)).toEqual(whole.subarray(start, end));
  });
});
