import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FOLD_AT, folded } from '../../../../src/view/page/text/fold.ts';
import { numRuns } from '../../../support/property-runs.ts';

const run = (text: string) => ({ text, look: null });

describe('a very long line', () => {
  it('is folded, and says how much is behind the fold', () => {
    const { runs, hidden } = folded([run('a'.repeat(FOLD_AT - 10)), run('b'.repeat(5_000)), run('c')]);
    expect(runs.map(({ text }) => text.length)).toEqual([FOLD_AT - 10, 10]);
    expect(hidden).toBe(4_991);
  });

  it('is not folded for a few characters', () => {
    expect(folded([run('a'.repeat(FOLD_AT + 100))]).hidden).toBe(0);
  });

  it('is cut between characters', () => {
    const { runs } = folded([run(`${'a'.repeat(FOLD_AT - 1)}👩🏽‍🔬${'b'.repeat(1_000)}`)]);
    expect(runs[0]?.text).toBe('a'.repeat(FOLD_AT - 1));
  });

  it('is the beginning of what it was', () => {
    const texts = fc.array(fc.string({ unit: 'grapheme', maxLength: 30 }), { maxLength: 10 });
    fc.assert(
      fc.property(texts, fc.nat(40), (all, most) => {
        const { runs, hidden } = folded(all.map(run), most);
        const text = runs.map((one) => one.text).join('');
        expect(all.join('').startsWith(text)).toBe(true);
        expect(text.length + hidden).toBe(all.join('').length);
      }),
      numRuns(200),
    );
  });
});
