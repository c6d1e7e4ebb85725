import stringWidth from 'string-width';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  BottomLines,
  columnsOf,
  cutToColumns,
  forStderr,
  terminalText,
  wrapToColumns,
} from '../../../src/cli/show/terminal.ts';

const ESC = '\u001b';

describe('the text of a job on a terminal', () => {
  it('keeps its colours, and ends them with the line', () => {
    expect(terminalText(`${ESC}[1;31mred${ESC}[0m and ${ESC}[38;5;9mmore`, true)).toBe(
      `${ESC}[1;31mred${ESC}[0m and ${ESC}[38;5;9mmore${ESC}[0m`,
    );
  });

  it('has no colours where none are wanted', () => {
    const red = `${ESC}[1;31mred${ESC}[0m`;
    expect(terminalText(red, false)).toBe('red');
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const [isWanted, shown] of [
      ['', 'red'],
      ['1', red],
    ] as const) {
      vi.stubEnv('NO_COLOR', isWanted === '' ? '1' : '');
      vi.stubEnv('FORCE_COLOR', isWanted);
      expect(forStderr(red)).toBe(shown);
    }
  });

  it.each([
    ['cursor movement', `a${ESC}[2Ab${ESC}[10;20Hc`, 'abc'],
    ['clearing', `a${ESC}[2Jb${ESC}[K`, 'ab'],
    ['private modes', `a${ESC}[?25lb${ESC}[?1049h`, 'ab'],
    ['a colour that asks for something else', `a${ESC}[>4;2mb`, 'ab'],
    ['a window title', `a${ESC}]0;title\u0007b${ESC}]0;title${ESC}\\c`, 'abc'],
    ['a device control string', `a${ESC}Pq#0;2;0;0;0${ESC}\\b`, 'ab'],
    ['character sets and a full reset', `a${ESC}(0b${ESC}cc`, 'abc'],
    ['a sequence that the line ends in', `a${ESC}[31`, 'a'],
    ['a lone escape', `a${ESC}`, 'a'],
    ['control characters', 'a\u0000\u0007\u0008b\u009b', 'ab'],
    ['tabs', 'a\tb', 'a  b'],
  ])('is rid of %s', (_, line, shown) => {
    expect(terminalText(line, true)).toBe(shown);
  });

  it('has marks for what is invisible, as the page has', () => {
    expect(terminalText('pass\u200bword a\u202eb', true)).toBe('pass<U+200B>word a<U+202E>b');
  });

  it('keeps what many languages need', () => {
    const line = 'Příliš Ξεσκεπάζω いろは نص حكيم 👩🏽‍🔬 🌡️ e\u0301';
    expect(terminalText(line, true)).toBe(line);
  });
});

describe('columns', () => {
  it.each([
    ['plain', 5],
    ['計算ノード', 10],
    ['e\u0301', 1],
    ['🚀', 2],
    ['👩🏽‍🔬', 2],
    [`${ESC}[31mred${ESC}[0m`, 3],
  ])('are counted as terminals do: %s', (text, columns) => {
    expect(cutToColumns(text, columns)).toBe(text);
    expect(cutToColumns(text, columns - 1)).not.toBe(text);
  });

  it('are never exceeded by a cut, and a text that fits is left alone', () => {
    expect(cutToColumns('plain', 5)).toBe('plain');
    expect(cutToColumns('plainer', 5)).toBe('plai…');
    expect(cutToColumns('計算ノード', 6)).toBe('計算…');
    expect(cutToColumns('👩🏽‍🔬👩🏽‍🔬👩🏽‍🔬', 4)).toBe('👩🏽‍🔬…');
    expect(stringWidth(cutToColumns('👩🏽‍🔬計e\u0301計👩🏽‍🔬計', 6))).toBeLessThanOrEqual(6);
    expect(cutToColumns(`${ESC}[31mredder${ESC}[0m`, 4)).toBe(`${ESC}[31mred${ESC}[0m…`);
  });

  it('wrap between words, each line indented as the first', () => {
    expect(wrapToColumns('  one two three', 9)).toEqual(['  one two', '  three']);
    expect(wrapToColumns('one two', 9)).toEqual(['one two']);
    expect(wrapToColumns('unbreakable word', 4)).toEqual(['unbreakable', 'word']);
  });
});

it('a terminal that reports no size has room for every line', () => {
  expect(columnsOf({ isTTY: true, columns: 0 })).toBe(Number.POSITIVE_INFINITY);
});

it('lines at the bottom stay below what is written, and are shown again after they were cleared', () => {
  const written: string[] = [];
  const stream = { isTTY: true, columns: 80, write: (text: string) => written.push(text) > 0 } as never;
  const bottom = new BottomLines(stream);
  const steps = [
    () => bottom.show(['a', 'b']),
    () => bottom.show(['a', 'b']),
    () => bottom.write('line\n'),
    () => bottom.clear(),
    () => bottom.write('line\n'),
    () => bottom.show(['a', 'b']),
    () => bottom.show(['c']),
    () => bottom.leave(),
    () => bottom.leave(),
    () => bottom.show(['c']),
  ].map((step) => {
    step();
    return written.splice(0).join();
  });
  const erased = `\r${ESC}[1A${ESC}[J`;
  expect(steps).toEqual(['a\nb', '', `${erased}line\na\nb`, erased, 'line\n', 'a\nb', `${erased}c`, '\n', '', 'c']);
});
