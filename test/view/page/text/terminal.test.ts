import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { coloursOf, shown } from '../../../../src/view/page/text/terminal.ts';
import { cpuMs } from '../../../support/cpu-cost.ts';
import { numRuns } from '../../../support/property-runs.ts';

const ESC = '\u001b';
const textOf = (line: string) =>
  shown(line)
    .map(({ text }) => text)
    .join('');

describe('a line as a terminal shows it', () => {
  it.each([
    ['plain text', 'plain text', 'plain text'],
    ['a CRLF line', 'line\r', 'line'],
    ['a progress bar', ' 10 %\r 50 %\r100 %', '100 %'],
    ['a shorter text over a longer one', 'abcdef\rxy', 'xycdef'],
    ['a line that is erased first', `a long text\r${ESC}[Kshort`, 'short'],
    ['a line of which the beginning is erased', `abcdef\b\b\b${ESC}[1K!`, '   !ef'],
    ['backspaces', 'abc\b\bX', 'aXc'],
    ['a column', `abc${ESC}[6Gd`, 'abc  d'],
    ['moves to both sides', `abc${ESC}[2DX${ESC}[1CY`, 'aXcY'],
    ['characters of two columns', '計算\rab', 'ab算'],
    ['a title of the window', `${ESC}]0;title\u0007text`, 'text'],
    ['a link', `${ESC}]8;;javascript:alert(1)${ESC}\\text${ESC}]8;;${ESC}\\`, 'text'],
    ['a screen that is cleared', `${ESC}[2J${ESC}[Htext`, 'text'],
    ['a sequence that never ends', `${ESC}]0;text`, `${ESC}]0;text`],
    ['nothing', '', ''],
  ])('%s', (_, line, text) => {
    expect(textOf(line)).toBe(text);
  });

  it('has the colours of the terminal, of the palette, and any others', () => {
    expect(shown(`a${ESC}[1;31mb${ESC}[0mc${ESC}[38;5;196md${ESC}[48;2;1;2;3me${ESC}[m`)).toEqual([
      { text: 'a', style: null },
      { text: 'b', style: { colour: 'ansi-red', background: null, decorations: ['bold'] } },
      { text: 'c', style: null },
      { text: 'd', style: { colour: 'rgb(255, 0, 0)', background: null, decorations: [] } },
      { text: 'e', style: { colour: 'rgb(255, 0, 0)', background: 'rgb(1, 2, 3)', decorations: [] } },
    ]);
    expect(shown(`${ESC}[38:2::9:8:7mx`)[0]?.style?.colour).toBe('rgb(9, 8, 7)');
    expect(shown(`${ESC}[38;5;244mx`)[0]?.style?.colour).toBe('rgb(128, 128, 128)');
  });

  it('keeps the colour of each character that another one does not replace', () => {
    expect(shown(`${ESC}[31mabc\r${ESC}[32mX`)).toEqual([
      { text: 'X', style: { colour: 'ansi-green', background: null, decorations: [] } },
      { text: 'bc', style: { colour: 'ansi-red', background: null, decorations: [] } },
    ]);
  });

  it('goes on with the colours of the line before', () => {
    expect(coloursOf(`${ESC}[31ma${ESC}[0mb${ESC}[1mc${ESC}[33md`)).toBe(`${ESC}[1m${ESC}[33m`);
    expect(shown('text', `${ESC}[33m`)).toEqual([
      { text: 'text', style: { colour: 'ansi-yellow', background: null, decorations: [] } },
    ]);
  });

  it('hides no text by conceal', () => {
    expect(shown(`${ESC}[8mhidden`)).toEqual([{ text: 'hidden', style: null }]);
  });

  it('loses no character that moves nothing', () => {
    const text = fc
      .string({ unit: 'grapheme', maxLength: 50 })
      .filter((line) => ![...line].some((one) => ['\r', '\b', ESC].includes(one)));
    fc.assert(
      fc.property(text, (line) => {
        expect(textOf(line)).toBe(line);
        expect(textOf(`${ESC}[31m${line}${ESC}[0m`)).toBe(line);
      }),
      numRuns(300),
    );
  });

  it.each([
    ['returns', '[####    ] 12 %\r'.repeat(8_000)],
    ['colours', `${ESC}[31mx`.repeat(12_000)],
    ['beginnings of titles', `${ESC}]`.repeat(30_000)],
    ['numbers without an end', `${ESC}[${'1;'.repeat(30_000)}`],
    ['jumps far to the right', `${ESC}[999999999Cx`.repeat(5_000)],
  ])('takes no long time over 64 KiB of %s', (_, line) => {
    expect(cpuMs(() => shown(line))).toBeLessThan(2_000);
  });
});
