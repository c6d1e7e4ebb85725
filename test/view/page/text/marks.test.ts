import { describe, expect, it } from 'vitest';
import { pieces } from '../../../../src/view/page/text/terminal.ts';

const marked = (text: string) =>
  pieces(text).map(({ text: piece, means }) => (means === undefined ? piece : `<${piece}>`));

describe('what cannot be seen', () => {
  it.each([
    ['an undecodable byte', 'a\udcffb', ['a', '<FF>', 'b']],
    ['what turns the direction of text', 'a\u202eb\u2066c', ['a', '<U+202E>', 'b', '<U+2066>', 'c']],
    ['controls', '\u0000\u001b\u007f\u009b', ['<␀>', '<␛>', '<␡>', '<U+009B>']],
    ['what divides lines', 'a\u2028b', ['a', '<U+2028>', 'b']],
    ['a byte-order mark', '\ufeffa', ['<U+FEFF>', 'a']],
  ])('is a mark: %s', (_, text, expected) => {
    expect(marked(text)).toEqual(expected);
  });

  it.each([
    ['tabs', 'a\tb'],
    ['emoji of several parts', '👩🏽‍🔬'],
    ['any language', 'نص حكيم, ह\u200cिन्दी, 計算'],
    ['markup', '<script>alert(1)</script>'],
    ['a genuine replacement character', '\ufffd'],
  ])('is not: %s', (_, text) => {
    expect(marked(text).join('')).toBe(text);
  });
});
