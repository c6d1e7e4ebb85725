/** How many jobs each agent gets. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { excessOf, sharesOf } from '../../src/fleet/owners/balance.ts';
import { numRuns } from '../support/property-runs.ts';

const agents = fc.uniqueArray(
  fc.record({
    name: fc.string({ minLength: 1, maxLength: 3 }),
    mostJobs: fc.integer({ min: 1, max: 50 }),
    jobs: fc.nat(50),
  }),
  { minLength: 1, maxLength: 6, selector: ({ name }) => name },
);

describe('the shares', () => {
  it('are all the jobs, if there is room, and no agent has more than its room', () => {
    fc.assert(
      fc.property(fc.nat(200), agents, (jobs, all) => {
        const shares = sharesOf(jobs, all);
        const room = all.reduce((sum, { mostJobs }) => sum + mostJobs, 0);
        const shared = [...shares.values()].reduce((sum, share) => sum + share, 0);
        expect(shared).toBe(Math.min(jobs, room));
        for (const { name, mostJobs } of all) expect(shares.get(name)).toBeLessThanOrEqual(mostJobs);
        // Whoever has less than another has as many as it may, or one less.
        const most = Math.max(...shares.values());
        for (const { name, mostJobs } of all)
          expect(shares.get(name)).toBeGreaterThanOrEqual(Math.min(mostJobs, most - 1));
        // Each agent computes them.
        expect(sharesOf(jobs, all.toReversed())).toEqual(shares);
      }),
      numRuns(300),
    );
  });

  it('move no job between agents that have as many, or one more', () => {
    fc.assert(
      fc.property(fc.nat(5), fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }), (least, more) => {
        const all = more.map((hasMore, index) => ({
          name: String(index),
          mostJobs: 50 + index,
          jobs: least + (hasMore ? 1 : 0),
        }));
        const jobs = all.reduce((sum, each) => sum + each.jobs, 0);
        const shares = sharesOf(jobs, all);
        for (const each of all) expect(shares.get(each.name)).toBe(each.jobs);
      }),
      numRuns(300),
    );
  });
});

it('what is given back is a tenth of what is too much, one at least, and no more than others have room for', () => {
  const given = ['100 50 50', '51 50 9', '50 50 9', '40 50 9', '100 50 0', '100 50 3', '100 50 -3', '81 50 31'];
  const excess = given.map((each) => excessOf(...(each.split(' ').map(Number) as [number, number, number])));
  expect(excess).toEqual([5, 1, 0, 0, 0, 1, 0, 4]);
});
