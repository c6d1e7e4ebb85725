import { expect, test } from 'vitest';
import { attempted, scanJson } from '../../support/wire-scan.ts';

/** Texts are read in pieces of so many bytes, however long the chunks of the network are. */
const PIECE_BYTES = 32 * 1024;
/** What a cut may be taken for another thing: backslashes, numbers, pairs, and what looks like them. */
const WRITTEN = String.raw`\" \\ \\\\\\\\\\ \\\\\\\\u00e9 \n \u20ac \u20ac\u0022\u005c\u00e9 \ud83d\ude00 \\ud83d\u20ac \\\ud83d\ude00 € 😀`;

test.each(WRITTEN.split(' '))('a long text keeps %s wherever a piece of it ends', (written) => {
  const befores = Array.from({ length: written.length + 10 }, (_, more) => PIECE_BYTES + 1 - more);
  // None but the first may hold another one.
  for (const [before, after] of [...befores.map((bytes) => [bytes, 40] as const), [0, 3 * PIECE_BYTES] as const]) {
    const string = `"${'x'.repeat(before)}${written}\\n${'y'.repeat(after)}"`;
    for (const cuts of before > 0 ? [[]] : [[], 1_000])
      expect(scanJson(`[{"Content":${string}}]`, 'parts', cuts).texts.map(String)).toEqual([JSON.parse(string)]);
  }
});

test('a character that is not escaped is an error in base64, too, wherever it stands', () => {
  const base64 = Buffer.alloc(90, 'some bytes').toString('base64');
  for (let control = 0; control < 32; control++)
    for (const place of [0, 1, 3, 4, 64, base64.length - 1, base64.length])
      for (const cuts of [[], 1, 7])
        for (const start of ['', '\\n']) {
          const wrong = `"${start}${base64.slice(0, place)}${String.fromCharCode(control)}${base64.slice(place)}"`;
          expect(attempted(() => scanJson(wrong, 'file', cuts))).toMatch(/^malformed: /);
        }
});
