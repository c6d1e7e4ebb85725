import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { forgetSizes, MAX_BYTES, MAX_ROWS, TextWindow } from '../../../../src/view/page/file/text-window.ts';
import { numRuns } from '../../../support/property-runs.ts';

const whole = (text: string | Buffer, start = 0, line: number | undefined = 0) => {
  const window = new TextWindow();
  window.replace({ start, line, beginsLine: true }, Buffer.from(text));
  return window;
};
const startsOf = (window: TextWindow) => window.rows.map(({ start }) => start);
const rowsOf = (window: TextWindow) => window.rows.map(({ bytes }) => Buffer.from(bytes).toString());

describe('the rows of a window', () => {
  it('are its lines, and what stands behind the last of them', () => {
    const window = whole('a\n\nb\nc', 100, 7);
    expect(rowsOf(window)).toEqual(['a\n', '\n', 'b\n', 'c']);
    expect(startsOf(window)).toEqual([100, 102, 103, 105]);
    expect(window.rows.map((_, index) => window.lineOf(index))).toEqual([7, 8, 9, 10]);
  });

  it('are pieces of a line that is very long, cut between characters', () => {
    const window = whole(`short\n${'計'.repeat(50_000)}\nlast\n`);
    const numbers = window.rows.map((_, index) => window.lineOf(index));
    expect([numbers.slice(0, 3), numbers.at(-1)]).toEqual([[0, 1, undefined], 2]);
    expect(numbers.filter((number) => number !== undefined)).toEqual([0, 1, 2]);
    expect(rowsOf(window).join('')).toBe(`short\n${'計'.repeat(50_000)}\nlast\n`);
    for (const row of rowsOf(window)) {
      expect(row).not.toContain('\ufffd');
      expect(Buffer.byteLength(row)).toBeLessThanOrEqual(4 * 1024 + 32);
    }
    expect(window.lineStartOf(window.rows.length - 2)).toBe(6);
  });

  it.each([
    ['characters', '計'],
    ['colours', '\u001b[38;5;12mx\u001b[0m'],
    ['states of a progress bar', '\r 42 % of all 1000 [00:12]'],
  ])('are cut at the same bytes whatever comes before them, and within none of: %s', (_, unit) => {
    const line = Buffer.from(unit.repeat(20_000 / unit.length));
    const all = whole(line);
    for (const start of [1, 5, 1_000, 3_333, 10_000]
      .map((each) => each * Buffer.byteLength(unit))
      .filter((at) => at < 15_000)) {
      const window = new TextWindow();
      window.replace({ start, line: undefined, beginsLine: false }, line.subarray(start));
      const isLater = (row: number) => row > start + 5_000;
      expect(startsOf(window).filter(isLater)).toEqual(startsOf(all).filter(isLater));
    }
    for (const row of rowsOf(all).slice(0, -1)) {
      expect(row).not.toContain('\ufffd');
      expect(/^\[?[0-9;]*$/.test(row.slice(row.lastIndexOf('\u001b') + 1)) && row.includes('\u001b')).toBe(false);
      if (unit.startsWith('\r')) expect(row.endsWith('\r')).toBe(true);
    }
    expect(all.foldedStates(1).hasMore, 'all of its states are counted').toBe(false);
  });

  it('are the same however the bytes came', () => {
    const lines = fc.array(fc.constantFrom('', 'a', 'bc', 'é', 'x'.repeat(70_000)), { maxLength: 12 });
    fc.assert(
      fc.property(lines, fc.array(fc.nat(200_000), { maxLength: 4 }), (all, cuts) => {
        const text = Buffer.from(all.join('\n'));
        const window = whole('');
        const edges = [0, ...cuts.map((cut) => Math.min(cut, text.length)).sort((a, b) => a - b), text.length];
        for (const [index, edge] of edges.entries()) window.append(text.subarray(edges[index - 1] ?? 0, edge));
        const at = window.start;
        expect(window.end).toBe(text.length);
        expect(rowsOf(window).join('')).toBe(text.subarray(at).toString());
        const expected = whole(text.subarray(at), at, text.subarray(0, at).toString().split('\n').length - 1);
        const lineStarts = (of: TextWindow) =>
          startsOf(of).filter((_, row) => of.rows[row]?.isContinued === false || row === 0);
        expect(lineStarts(window)).toEqual(lineStarts(expected));
        expect(window.rows.map((_, row) => window.lineOf(row))).toEqual(
          expected.rows.map((_, row) => expected.lineOf(row)),
        );
      }),
      numRuns(60),
    );
  });

  it.each([50, 10_000, 50_000])('fold the earlier states of a progress bar of %i states into one row', (states) => {
    const bar = Array.from({ length: states }, (_, state) => `epoch 15: state ${state} of ${states}   `).join('\r');
    const window = whole('');
    const text = Buffer.from(`before\n${bar}\nafter\n`);
    for (let at = 0; at < text.length; at += 100_000) window.append(text.subarray(at, at + 100_000));
    const [last, after] = [window.rows.length - 2, window.rows.length - 1];
    const shown = rowsOf(window)[last] ?? '';
    expect(shown).toMatch(new RegExp(`state ${states - 1} of ${states} {3}\n$`));
    expect(shown.length).toBeLessThan(4_096);
    expect(rowsOf(window)[after]).toBe('after\n');
    expect(window.lineOf(after)).toBe(2);
    expect(window.rows.length).toBeLessThanOrEqual(3);
    const folded = window.foldedStates(last);
    expect([folded.states + shown.split('\r').length, folded.hasMore, window.start]).toEqual([states, false, 0]);
    expect(rowsOf(window)[0]).toBe('before\n');
    expect(window.shownBytes).toBeLessThan(4_096);
  });

  it('are one of a progress bar, however its states came', () => {
    const state = fc.constantFrom('10 %\r', `${'x'.repeat(90)}\r`, `${'y'.repeat(300)}\r`);
    const bars = fc.array(state, { minLength: 10, maxLength: 400 });
    fc.assert(
      fc.property(bars, fc.nat(100_000), fc.nat(100_000), (states, one, other) => {
        const text = Buffer.from(`before\n${states.join('')}\nafter\n`);
        const [from, to] = [one % text.length, other % text.length].sort((a, b) => a - b) as [number, number];
        const isLine = from === 0 || text[from - 1] === 0x0a;
        const window = new TextWindow();
        window.replace({ start: from, line: undefined, beginsLine: isLine }, text.subarray(from, to));
        window.append(text.subarray(to));
        window.prepend({ start: 0, line: 0, beginsLine: true }, text.subarray(0, from));
        const expected = whole(text);
        expect(startsOf(window)).toEqual(startsOf(expected));
        const bar = rowsOf(window)[1] ?? '';
        expect(text.toString().endsWith(`${bar}after\n`)).toBe(true);
        const { states: folded, hasMore } = window.foldedStates(1);
        expect([folded + bar.split('\r').length - 1, hasMore]).toEqual([states.length, false]);
      }),
      numRuns(60),
    );
  });

  it('go away where the content was cut', () => {
    const window = whole('aa\nbb\ncc\n');
    window.cutBack(4);
    expect(rowsOf(window)).toEqual(['aa\n', 'b']);
    window.append(Buffer.from('X\nY'));
    expect(rowsOf(window)).toEqual(['aa\n', 'bX\n', 'Y']);
  });

  it('say which one a byte is in', () => {
    const window = whole('aa\nbb\ncc', 10);
    expect([0, 10, 12, 13, 16, 99].map((byte) => window.rowAt(byte))).toEqual([0, 0, 0, 1, 2, 2]);
  });
});

describe('a window that grows for ever', () => {
  it.each([
    ['short lines', 'a line of a job that never ends\n'.repeat(100)],
    ['one line without an end', 'x'.repeat(5_000)],
    ['a progress bar without an end', `${'x'.repeat(40)}\r`.repeat(100)],
  ])('keeps its limits, the end, and the numbers of lines: %s', (_, piece) => {
    const window = whole('');
    const times = 250;
    for (let time = 0; time < times; time++) {
      window.append(Buffer.from(piece));
      expect(window.shownBytes).toBeLessThanOrEqual(MAX_BYTES + 64 * 1024);
      expect(window.rows.length).toBeLessThanOrEqual(MAX_ROWS);
    }
    expect(window.end).toBe(times * piece.length);
    const lines = piece.split('\n').length - 1;
    if (lines > 0) expect(window.lineOf(window.rows.length - 1)).toBe(times * lines - 1);
  });
});

it('heights are kept of the rows that are here, however many there were', () => {
  const sizes = new Map<number, number>();
  for (let start = 0; start < 100_000; start += 10) {
    sizes.set(start, 40);
    const rows = Array.from({ length: 50 }, (_, index) => start - 10 * index).reverse();
    forgetSizes(sizes, { start: start - 490, end: start + 10, rows });
    expect([sizes.size <= 2_051, sizes.get(start)]).toEqual([true, 40]);
  }
});
