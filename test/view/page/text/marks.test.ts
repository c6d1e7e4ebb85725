import { describe, expect, it } from 'vitest';
import { decode, pieces } from '../../../../src/view/page/text/terminal.ts';

const marked = (text: string) =>
  pieces(text).map(({ text: piece, means }) => (means === undefined ? piece : `<${piece}>`));

describe('what cannot be seen', () => {
  it.each([
    ['an undecodable byte', decode(Buffer.from('a\xffb', 'latin1')), ['a', '<\ufffd>', 'b']],
    ['what turns the direction of text', 'a\u202eb\u2066c', ['a', '<U+202E>', 'b', '<U+2066>', 'c']],
    ['controls', '\u0000\u001b\u007f\u009b', ['<␀>', '<␛>', '<␡>', '<U+009B>']],
    ['what divides lines', 'a\u2028b', ['a', '<U+2028>', 'b']],
    ['a byte-order mark', '\ufeffa', ['<U+FEFF>', 'a']],
    ['a blank of no width', 'pass\u200bword', ['pass', '<U+200B>', 'word']],
    ['a soft hyphen and a word joiner', 'a\u00adb\u2060', ['a', '<U+00AD>', 'b', '<U+2060>']],
    ['a filler that counts as a letter', 'a\u3164b', ['a', '<U+3164>', 'b']],
    ['a tag', 'a\u{e0041}', ['a', '<U+E0041>']],
    ['a joiner that joins nothing', 'pass\u200dword', ['pass', '<U+200D>', 'word']],
  ])('is a mark: %s', (_, text, expected) => {
    expect(marked(text)).toEqual(expected);
  });

  it.each([
    ['tabs', 'a\tb'],
    ['emoji of several parts', '👩🏽‍🔬'],
    ['any language', 'نص حكيم, ह\u200cिन्दी, 計算'],
    ['markup', '<script>alert(1)</script>'],
  ])('is not: %s', (_, text) => {
    expect(marked(text).join('')).toBe(text);
  });
});
