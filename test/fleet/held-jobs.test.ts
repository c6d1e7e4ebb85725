/** Until when an agent may write for a job, by its own clocks. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { TakenJob } from '../../src/fleet/owners/claims.ts';
import { LeasedJobs } from '../../src/fleet/owners/leased-jobs.ts';
import type { JobId } from '../../src/job.ts';
import { systemClock } from '../../src/system/clock.ts';
import { numRuns } from '../support/property-runs.ts';

const LEASE_MS = 10_000;
const JOB: TakenJob = { jobId: '1' as JobId, attempt: 1, mirror: null, isTakeover: false };

function setUp() {
  const time = { monotonic: 0, wall: 1_000_000 };
  const held = new LeasedJobs({ ...systemClock, monotonic: () => time.monotonic, now: () => time.wall }, LEASE_MS);
  const pass = (ms: number) => {
    time.monotonic += ms;
    time.wall += ms;
  };
  return { time, held, pass };
}

it('a lease is over before the database can have given it to another, however the clocks and the calls go', () => {
  const step = fc.oneof(
    fc.record({ pass: fc.integer({ min: 1, max: 6_000 }) }),
    fc.record({ standsStill: fc.integer({ min: 1, max: 20_000 }) }),
    fc.record({ clockSet: fc.nat(60_000) }),
    fc.record({ travels: fc.integer({ min: 0, max: 4_000 }), arrives: fc.boolean(), answered: fc.boolean() }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const { time, held, pass } = setUp();
      /** By a clock that neither stands still nor is set. */
      let now = 0;
      let leaseEnds = LEASE_MS;
      let isOwned = true;
      held.prolong(held.moment());
      held.add(JOB);
      for (const one of steps) {
        if ('pass' in one) {
          pass(one.pass);
          now += one.pass;
        } else if ('standsStill' in one) {
          // A machine that sleeps: only its wall clock goes on.
          time.wall += one.standsStill;
          now += one.standsStill;
        } else if ('clockSet' in one) {
          time.wall += one.clockSet;
        } else {
          const sentAt = held.moment();
          pass(one.travels);
          now += one.travels;
          if (now > leaseEnds) isOwned = false;
          if (one.arrives && isOwned) leaseEnds = now + LEASE_MS;
          if (one.arrives && one.answered && isOwned) held.prolong(sentAt);
        }
        if (now > leaseEnds) isOwned = false;
        if (!isOwned) expect(held.isValid).toBe(false);
      }
    }),
    numRuns(500),
  );
});
