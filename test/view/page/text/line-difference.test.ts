import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lineDifference } from '../../../../src/view/page/text/line-difference.ts';

const shown = (before: string, after: string) =>
  lineDifference(before.split(''), after.split(''))
    .map(({ kind, text }) => `${{ same: ' ', before: '-', after: '+' }[kind]}${text}`)
    .join('');

describe('the difference of lines', () => {
  it.each([
    ['abc', 'abc', ' a b c'],
    ['abc', 'axc', ' a-b+x c'],
    ['', 'ab', '+a+b'],
    ['abcd', 'bd', '-a b-c d'],
    ['aa', 'aaa', ' a a+a'],
  ])('%s, %s', (before, after, expected) => {
    expect(shown(before, after)).toBe(expected);
  });

  const texts = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 40 });
  it('has all lines of both, in order', () => {
    fc.assert(
      fc.property(texts, texts, (before, after) => {
        const lines = lineDifference(before, after);
        const without = (kind: string) => lines.filter((line) => line.kind !== kind).map(({ text }) => text);
        expect(without('after')).toEqual(before);
        expect(without('before')).toEqual(after);
      }),
    );
  });

  it('is none between lines with the same key, which have the text of the second one', () => {
    const withoutNumbers = (text: string) => text.replaceAll(/[0-9]+/g, '0');
    expect(lineDifference(['at 1', 'a 2', 'end 3'], ['at 4', 'b 2', 'end 33'], withoutNumbers)).toEqual([
      { kind: 'same', text: 'at 4' },
      { kind: 'before', text: 'a 2' },
      { kind: 'after', text: 'b 2' },
      { kind: 'same', text: 'end 33' },
    ]);
  });

  it('of very many lines is all of one, then all of the other', () => {
    const many = (word: string) => Array.from({ length: 1_500 }, (_, index) => `${word} ${index}`);
    const lines = lineDifference(['head', ...many('old'), 'common', 'x'], ['head', ...many('new'), 'common', 'y']);
    expect(lines.map(({ kind }) => kind).join(' ')).toMatch(/^same (before )+(after )+after$/);
  });
});
