/** From when a lease counts, and when an agent releases the jobs of others, over a database that answers late. */
import { expect, it } from 'vitest';
import { JobtailError } from '../../src/errors.ts';
import type { FleetSummary, Member } from '../../src/fleet/agents/agents.ts';
import { Heartbeat } from '../../src/fleet/agents/heartbeat.ts';
import type { Database } from '../../src/fleet/database/database.ts';
import type { Queries } from '../../src/fleet/database/tables.ts';
import type { Joined } from '../../src/fleet/joined.ts';
import { Claims } from '../../src/fleet/owners/claims.ts';
import { LeasedJobs } from '../../src/fleet/owners/leased-jobs.ts';
import type { JobId } from '../../src/job.ts';
import { systemClock } from '../../src/system/clock.ts';

const LEASE_MS = 30_000;

/** An agent whose heartbeats take `tripMs`, in a fleet with jobs of a silent agent. */
function agentWith({ tripMs = 0 } = {}) {
  const time = { ms: 1_000_000 };
  const monotonic = () => time.ms;
  const leased = new LeasedJobs({ ...systemClock, monotonic, now: monotonic }, LEASE_MS);
  const counts = { released: 0, noticed: 0 };
  const freed: number[] = [];
  const lost: string[] = [];
  const outage: { error: JobtailError | undefined } = { error: undefined };
  const summary: { -readonly [Name in keyof FleetSummary]?: FleetSummary[Name] } = {
    own: [],
    silent: 1,
    isRestored: false,
  };
  const joined = {
    agents: {
      report: async () => {
        time.ms += tripMs;
        if (outage.error !== undefined) throw outage.error;
        return summary;
      },
    },
    claims: {
      freeSilent: async () => {
        counts.released += 1;
        return freed.shift() ?? 0;
      },
    },
    commands: { notify: async () => void counts.noticed++ },
  } as Partial<Record<keyof Joined, unknown>> as Joined;
  const failures: unknown[] = [];
  const heartbeat = new Heartbeat({
    ...{
      joined,
      leased,
      monotonic,
      member: { leaseMs: LEASE_MS } as Member,
      onFailure: (error) => failures.push(error),
    },
    ...{ report: () => ({}) as never, onBeat: () => {}, onSummary: () => {} },
    onLost: (jobs) => void lost.push(...jobs.map(({ jobId, attempt }) => `${jobId} ${attempt}`)),
  });
  const tick = async (afterMs: number) => {
    time.ms += afterMs;
    heartbeat.tick();
    await heartbeat.ended();
  };
  return { time, leased, counts, freed, lost, outage, failures, summary, heartbeat, tick };
}

it('a lease counts from the request of the heartbeat, not from its response', async () => {
  const { time, leased, tick } = agentWith({ tripMs: 8_000 });
  await tick(0);
  // 22 s of it are left, less the second for a write.
  time.ms += 20_999;
  expect(leased.isValid).toBe(true);
  time.ms += 1;
  expect(leased.isValid).toBe(false);
});

it('an agent releases the jobs of silent ones a lease after its start, after it stood still, and after an outage', async () => {
  const { counts, outage, failures, tick } = agentWith();
  const seconds = async (count: number) => {
    for (let each = 0; each < count; each++) await tick(1_000);
  };
  await seconds(25);
  expect(counts.released).toBe(0);
  await seconds(15);
  expect(counts.released).toBeGreaterThan(0);
  const before = counts.released;
  // As long as its own lease: the others stood still with it, and had no time to report.
  await tick(LEASE_MS);
  await seconds(25);
  expect(counts.released).toBe(before);
  await seconds(15);
  expect(counts.released).toBeGreaterThan(before);
  expect(failures).toEqual([]);
  // The others had no database either.
  outage.error = new JobtailError('unavailable', 'the database is down');
  await seconds(15);
  expect(failures).toContain(outage.error);
  outage.error = undefined;
  const released = counts.released;
  await seconds(25);
  expect(counts.released).toBe(released);
  await seconds(15);
  expect(counts.released).toBeGreaterThan(released);
});

it('a job is lost with its fencing token, and others are woken for the jobs that are released', async () => {
  const { leased, counts, freed, lost, summary, tick } = agentWith();
  const jobs = ['1', '2', '3'].map((jobId) => ({ jobId: jobId as JobId, attempt: 2, mirror: null, isTakeover: false }));
  leased.add(...jobs);
  summary.own = jobs.slice(0, 2).map((job, index) => ({ ...job, attempt: job.attempt + index }));
  await tick(0);
  expect(lost).toEqual(['2 2', '3 2']);
  freed.push(100, 7);
  for (let seconds = 0; seconds < 40; seconds++) await tick(1_000);
  expect(counts.noticed).toBe(2);
});

it('an agent takes no job for a lease after the database was restored', async () => {
  const { time, summary, heartbeat, tick } = agentWith();
  await tick(0);
  for (let restored = 0; restored < 2; restored++) {
    time.ms += 10 * LEASE_MS;
    expect(heartbeat.mayAcquire).toBe(true);
    summary.isRestored = true;
    await heartbeat.refresh();
    summary.isRestored = false;
    time.ms += LEASE_MS - 1;
    expect(heartbeat.mayAcquire).toBe(false);
    time.ms += 1;
  }
  expect(heartbeat.mayAcquire).toBe(true);
});

it('fenced transactions of one agent run one after the other, in the order of the calls', async () => {
  const steps: string[] = [];
  const ends: (() => void)[] = [];
  const sql = { query: async () => [{ jobId: '1' }] } as unknown as Queries;
  const database = { transaction: <T>(work: (sql: Queries) => Promise<T>) => work(sql) } as unknown as Database;
  const claims = new Claims(database, { seenAt: null }, 'anna', 'first');
  const jobs = [{ jobId: '1', attempt: 1 }] as never;
  const run = (name: string) =>
    claims.fenced(jobs, async () => {
      steps.push(`${name} begins`);
      await new Promise<void>((resolve) => ends.push(resolve));
      steps.push(`${name} ends`);
    });
  const away = new JobtailError('fleet', 'the database is away');
  await expect(claims.fenced(jobs, () => Promise.reject(away))).rejects.toBe(away);
  const [first, second] = [run('first'), run('second')];
  await expect.poll(() => ends.length).toBe(1);
  ends[0]?.();
  await first;
  await expect.poll(() => ends.length).toBe(2);
  ends[1]?.();
  await second;
  expect(steps).toEqual(['first begins', 'first ends', 'second begins', 'second ends']);
});
