/** Until when an agent may write for a job, by its own clocks. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TakenJob } from '../../src/fleet/owners/claims.ts';
import { LeasedJobs } from '../../src/fleet/owners/leased-jobs.ts';
import type { JobId } from '../../src/job.ts';
import { systemClock } from '../../src/system/clock.ts';
import { numRuns } from '../support/property-runs.ts';

const LEASE_MS = 10_000;
const job = (number: number, attempt = 1): TakenJob => ({
  ...{ jobId: String(number) as JobId, attempt },
  ...{ mirror: null, isTakeover: false },
});

function setUp() {
  const time = { monotonic: 0, wall: 1_000_000 };
  const held = new LeasedJobs({ ...systemClock, monotonic: () => time.monotonic, now: () => time.wall }, LEASE_MS);
  const pass = (ms: number) => {
    time.monotonic += ms;
    time.wall += ms;
  };
  return { time, held, pass };
}

describe('a lease', () => {
  it('is over before the database can have given it to another, however the clocks and the calls go', () => {
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
        held.add(job(1));
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

  it('holds for nine of ten seconds after a call that went through, and is refused and counted then', () => {
    const { held, pass } = setUp();
    held.prolong(held.moment());
    held.add(job(1));
    // What is still under way when it is taken anew is of an earlier lease.
    expect(() => held.require('1' as JobId)).toThrow(/does not own it/);
    held.move([job(1)], 'follow');
    pass(8_999);
    held.require('1' as JobId);
    pass(1);
    expect(() => held.require('1' as JobId)).toThrow(/lease possibly expired/);
    expect(() => held.require('2' as JobId)).toThrow(/does not own it/);
    expect(held.refused).toBe(3);
    held.prolong(held.moment());
    held.require('1' as JobId);
  });

  it('is never valid before the first heartbeat, and as old as the last one', () => {
    const { held, pass } = setUp();
    expect([held.isValid, held.leaseAgeMs]).toEqual([false, 0]);
    held.prolong(held.moment());
    held.add(job(1));
    pass(3_000);
    expect([held.isValid, held.leaseAgeMs]).toEqual([true, 3_000]);
    const early = held.moment();
    pass(1_000);
    held.prolong(held.moment());
    held.prolong(early);
    expect(held.leaseAgeMs, 'a late response shortens no lease').toBe(0);
  });

  it('goes back to what it was where it could not be given, and never from a job without rows to a followed one', () => {
    const { held } = setUp();
    const [taken, followed] = [job(1), job(2)];
    for (const one of [taken, followed]) held.add(one);
    held.move([followed], 'follow');
    held.move([taken, followed], 'give');
    for (const event of ['follow', 'pause', 'give'] as const) held.move([taken, followed], event);
    expect([held.stateOf(taken.jobId), held.stateOf(followed.jobId)]).toEqual(['returning', 'leaving']);
    held.move([taken, followed], 'keep');
    expect([held.stateOf(taken.jobId), held.stateOf(followed.jobId)]).toEqual(['taken', 'paused']);
    held.remove(taken.jobId);
    held.move([taken], 'follow');
    expect(held.stateOf(taken.jobId)).toBeUndefined();
  });

  it('is tried again after the others, unless it was taken anew', () => {
    const { held } = setUp();
    const [first, second] = [job(1), job(2)];
    for (const one of [first, second]) held.add(one);
    held.requeue(first);
    held.requeue(job(2, 2));
    expect(held.all('taken')).toEqual([second, first]);
  });
});
