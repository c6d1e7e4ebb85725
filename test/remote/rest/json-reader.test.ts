import { expect, test } from 'vitest';
import { attempted, type Cuts, scanJson } from '../../support/wire-scan.ts';

const textOf = (string: string, cuts: Cuts = []) =>
  scanJson(`[{"Content":${string}}]`, 'parts', cuts).texts.map(String);
const errorOf = (file: string, cuts: Cuts) => attempted(() => scanJson(file, 'file', cuts));

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
        expect(errorOf(`"${wrong}"`, cuts)).toMatch(/^malformed: /);
        expect(errorOf(`"\\n${wrong}"`, cuts)).toMatch(/^malformed: /);
      }
});
