/** Times of lines and their histogram, from when bytes arrived. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arrivedIn, arrivedText, arrivedWords, binsOf, timeOfDay } from '../../../../src/view/page/file/arrivals.ts';

const at = (text: string) => new Date(`2026-11-22T${text}`).getTime();
const RANGES = [
  [0, 10, 1_000, 1_000, 1],
  [10, 20, 60_000, 90_000, 2],
  [25, 30, 100_000, 100_000, 0],
] as const;

describe('the time of a line', () => {
  it.each([
    [0, 5, { from: 1_000, to: 1_000 }],
    [12, 20, { from: 60_000, to: 90_000 }],
    [5, 12, { from: 1_000, to: 90_000 }],
    [25, 30, { from: 100_000, to: 100_000 }],
    [15, 27, undefined],
    [20, 25, undefined],
    [30, 31, undefined],
  ])('of the bytes %d to %d', (start, end, arrived) => {
    expect(arrivedIn(RANGES, start, end)).toEqual(arrived);
  });

  it('is a range where it is not exact', () => {
    const now = at('12:00:00');
    const exact = { from: at('07:35:44.400'), to: at('07:35:45') };
    const range = { from: at('07:35:45'), to: at('07:40:10') };
    expect(arrivedText(exact, now)).toBe('07:35:45');
    expect(arrivedWords(exact, now)).toBe('arrived 07:35:45');
    expect(arrivedText(range, now)).toBe('07:35:45 – 07:40:10');
    expect(arrivedWords(range, now)).toBe('arrived between 07:35:45 and 07:40:10');
    expect(arrivedText(exact, now + 86_400_000)).toBe('11-22 07:35:45');
  });

  it.each([
    ['7:35', '07:35:00', 0],
    ['07:35:45', '07:35:45', 0],
    ['12:05', '12:05:00', -1],
    ['24:00', undefined, 0],
    ['1200', undefined, 0],
  ])('is typed as %s', (typed, clock, days) => {
    const expected = clock === undefined ? undefined : new Date(at(clock));
    expected?.setDate(expected.getDate() + days);
    expect(timeOfDay(typed, at('12:00:00'))).toBe(expected?.getTime());
  });
});

describe('the histogram', () => {
  it('has all lines and bytes, each within the time of its arrival', () => {
    const range = fc.record({
      bytes: fc.integer({ min: 1, max: 1_000_000 }),
      pauseMs: fc.integer({ min: 1, max: 9_000_000 }),
      lastsMs: fc.integer({ min: 0, max: 600_000 }),
    });
    fc.assert(
      fc.property(fc.array(range, { minLength: 1, maxLength: 40 }), (ranges) => {
        let [end, time] = [0, 1_000_000];
        const all = ranges.map(({ bytes, pauseMs, lastsMs }) => {
          const [start, from] = [end, time + pauseMs];
          [end, time] = [start + bytes, from + lastsMs];
          return [start, end, from, time, Math.floor(bytes / 80)] as const;
        });
        const bins = binsOf(all, 64);
        expect(bins.reduce((sum, { bytes }) => sum + bytes, 0)).toBeCloseTo(end, 3);
        const lines = all.reduce((sum, [, , , , each]) => sum + each, 0);
        expect(bins.reduce((sum, bin) => sum + bin.lines, 0)).toBeCloseTo(lines, 3);
        for (const { from, to, bytes, start } of bins) {
          const isAny = all.some(([, , low, high]) => low <= to + 1 && high >= from - 1);
          expect(bytes > 0).toBe(Number.isFinite(start));
          if (bytes > 0) expect(isAny).toBe(true);
        }
      }),
    );
  });

  it('is empty where no time is known', () => {
    expect(binsOf([], 64)).toEqual([]);
  });
});
