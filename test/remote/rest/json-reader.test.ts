import { describe, expect, test } from 'vitest';
import type { Value } from '../../../src/remote/content/values.ts';
import { attempted, type Cuts, MAX_BYTES, scanJson, type Taking } from '../../support/wire-scan.ts';

const textOf = (string: string, cuts: Cuts = []) =>
  scanJson(`[{"Content":${string}}]`, 'parts', cuts).texts.map(String);
const errorOf = (document: string, taking: Taking = 'parts', cuts: Cuts = []) =>
  attempted(() => scanJson(document, taking, cuts));

/** Texts are read in pieces of so many bytes, however long the chunks of the network are. */
const PIECE_BYTES = 32 * 1024;

test.each([
  ['"', '\\"'],
  ['a backslash', '\\\\'],
  ['backslashes', '\\\\\\\\\\\\\\\\\\\\'],
  ['backslashes before what looks like a number', '\\\\\\\\u00e9'],
  ['a line feed', '\\n'],
  ['a character by number', '\\u20ac'],
  ['characters by number', '\\u20ac\\u0022\\u005c\\u00e9'],
  ['a surrogate pair', '\\ud83d\\ude00'],
  ['what looks like half of a surrogate pair before a low one', '\\\\ud83d\\u20ac'],
  ['a surrogate pair behind a backslash', '\\\\\\ud83d\\ude00'],
  ['a character beyond ASCII', '€'],
  ['a character beyond the first plane', '😀'],
])('a long text keeps %s wherever a piece of it ends', (_, written) => {
  for (let before = PIECE_BYTES - written.length - 8; before <= PIECE_BYTES + 1; before += 1) {
    const string = `"${'x'.repeat(before)}${written}\\n${'y'.repeat(40)}"`;
    expect(textOf(string)).toEqual([JSON.parse(string)]);
  }
});

test.each(['\\u00e9', '\\ud83d\\ude00', '\\\\u', '\\n'])(
  'a text that begins with %s may go on long without another one',
  (written) => {
    const string = `"${written}${'y'.repeat(3 * PIECE_BYTES)}"`;
    for (const cuts of [[], 1_000]) expect(textOf(string, cuts)).toEqual([JSON.parse(string)]);
  },
);

test('a character that is not escaped is an error in base64, too, wherever it stands', () => {
  const base64 = Buffer.alloc(90, 'some bytes').toString('base64');
  const controls = Array.from({ length: 32 }, (_, code) => String.fromCharCode(code));
  for (const control of controls)
    for (const place of [0, 1, 3, 4, 64, base64.length - 1, base64.length])
      for (const cuts of [[], 1, 7]) {
        const wrong = base64.slice(0, place) + control + base64.slice(place);
        expect(errorOf(`"${wrong}"`, 'file', cuts)).toMatch(/^malformed: /);
        expect(errorOf(`"\\n${wrong}"`, 'file', cuts)).toMatch(/^malformed: /);
      }
});

// What else JSON.parse refuses: json-reader.property.test.ts.
describe('a document is wrong with', () => {
  const long = 'x'.repeat(500);
  test.each([
    ['nothing in it', ''],
    ['a raw NUL in a text', '["a\0b"]'],
    ['a raw control character far behind in a text', `["${long}\x1f${long}"]`],
    ['two contents in one entry', '[{"Content":"a","Content":"b"}]'],
    ['two members whose names differ by case', '[{"Content":"a","content":"b"}]'],
    ['a name that is a number of 64 bits', '{1234567890123456789:1}'],
    ['too much depth', '['.repeat(65)],
  ])('%s', (_, document) => {
    expect(errorOf(document)).toMatch(/^malformed: /);
    expect(errorOf(document, 'parts', 1)).toMatch(/^malformed: /);
  });

  test.each([
    ['a high one and nothing', '"\\ud83d"'],
    ['a low one', '"\\ude00"'],
  ])('half of a surrogate pair, which is said: %s', (_, string) => {
    const document = `[{"Content":${string}}]`;
    const said = /^malformed: a text of the response contains half of a surrogate pair/;
    expect(errorOf(document)).toMatch(said);
    expect(errorOf(document, 'parts', 1)).toMatch(said);
  });
});

test('a number is kept as it is written if it is a whole one that a JavaScript number may round', () => {
  const numbers = ['9223372036854775807', '-9007199254740993', '1234567890123456', '123456789012345'];
  const rounded = ['0.10000000000000000', '-0.12345678901234560', '1234567890123456.50', '1234567890123456e2', '1.50'];
  const document = `{"a":[${[...numbers, ...rounded].join()}],"b":"1234567890123456\\"7"}`;
  const values = [...numbers, ...rounded.map((number) => String(Number(number)))];
  expect(scanJson(document, 'nothing').rest).toEqual(
    new Map<string, Value>([
      ['a', values],
      ['b', '1234567890123456"7'],
    ]),
  );
});

describe('of an answer', () => {
  test('each content leaves an empty text in its item, and null itself', () => {
    const document = '[{"Content":"a","Offset":1},{"Content":null}, {\n"content" : "b"},null,{"Offset":"Content"},"c"]';
    expect(scanJson(document, 'parts')).toEqual({
      ...{ rest: null, texts: [Buffer.from('a'), Buffer.from('b')] },
      contents: [0, undefined, 1, undefined, undefined, undefined],
      items: [
        new Map([
          ['content', ''],
          ['offset', '1'],
        ]),
        new Map([['content', null]]),
        new Map([['content', '']]),
        null,
        new Map([['offset', 'Content']]),
        'c',
      ],
    });
  });

  test('a content is lifted only where it stands in an item', () => {
    const document = '[{"x":{"Content":"a"}},["Content","b"],[{"Content":"c"}],{"a \\"Content":"d"}]';
    expect(scanJson(document, 'parts')).toMatchObject({ texts: [], contents: Array(4).fill(undefined) });
    for (const other of ['{"Content":"a"}', '"a"']) expect(scanJson(other, 'parts').texts).toEqual([]);
    expect(scanJson('"a"', 'parts')).toMatchObject({ rest: 'a', items: [] });
  });

  test('a byte-order mark before all is no part', () => {
    expect(scanJson('\uFEFF"YQ=="', 'file', 1).texts.map(String)).toEqual(['a']);
  });

  test('a file may be empty, or null, or something else', () => {
    expect(scanJson('"YQ=="', 'file')).toMatchObject({ rest: '', texts: [Buffer.from('a')] });
    expect(scanJson(' ""\n', 'file')).toMatchObject({ rest: '', texts: [Buffer.alloc(0)] });
    expect(scanJson('null', 'file')).toMatchObject({ rest: null, texts: [] });
    expect(scanJson('["YQ=="]', 'file')).toMatchObject({ rest: ['YQ=='], texts: [] });
  });
});

describe('no answer has more than its limit:', () => {
  test.each([
    ['an item of many values', `[[${'0,'.repeat(2_500_000)}0]]`],
    ['a long text', `["${'x'.repeat(5_000_000)}"]`],
    ['an item without end', `[{"a":"${'x'.repeat(5_000_000)}`],
    ['white space', ' '.repeat(5_000_000)],
    ['many items', `[${`"${'a'.repeat(97)}",`.repeat(MAX_BYTES / 100)}0]`],
  ])('%s', (_, document) => {
    expect(errorOf(document)).toMatch(/^answer-too-large: /);
    expect(errorOf(document, 'parts', [1000, 70_000])).toMatch(/^answer-too-large: /);
  });

  test('except for lifted texts', () => {
    const text = 'x'.repeat(11_000_000);
    const { texts } = scanJson(`[{"Content":"${text}"}]`, 'parts', [9, 5_000_000]);
    expect(texts[0]?.length).toBe(text.length);
  });
});
