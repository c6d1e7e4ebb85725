/** From when a lease counts, and when an agent releases the jobs of others, over a database that answers late. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { asJobtailError, JobtailError } from '../../src/errors.ts';
import type { LeasedJob, Member } from '../../src/fleet/agents/agents.ts';
import { Heartbeat } from '../../src/fleet/agents/heartbeat.ts';
import type { Database } from '../../src/fleet/database/database.ts';
import type { Queries } from '../../src/fleet/database/tables.ts';
import type { Joined } from '../../src/fleet/joined.ts';
import { Claims, type TakenJob } from '../../src/fleet/owners/claims.ts';
import { LeasedJobs } from '../../src/fleet/owners/leased-jobs.ts';
import type { JobId } from '../../src/job.ts';
import { systemClock } from '../../src/system/clock.ts';
import { expectCases } from '../support/errors.ts';

const LEASE_MS = 30_000;

/** An agent whose heartbeats the test begins, over a fleet that answers as the steps of a case say. */
function agentOf() {
  const time = { monotonic: 0, wall: 5_000_000 };
  const clock = { ...systemClock, monotonic: () => time.monotonic, now: () => time.wall };
  const leased = new LeasedJobs(clock, LEASE_MS);
  const lines: string[] = [];
  const fleet = { tripMs: 0, outage: undefined as JobtailError | undefined, freed: [] as number[] };
  const summary = { own: [] as LeasedJob[], silent: 1, isRestored: false };
  const say = (what: string) => void lines.push(`${time.monotonic / 1_000}: ${what}`);
  const pass = (ms: number) => {
    time.monotonic += ms;
    time.wall += ms;
  };
  const report = async () => {
    pass(fleet.tripMs);
    if (fleet.outage !== undefined) throw fleet.outage;
    return summary;
  };
  const freeSilent = async () => {
    const count = fleet.freed.shift() ?? 0;
    if (Number.isNaN(count)) throw new JobtailError('fleet', 'nothing is released');
    say(`released ${count}`);
    return count;
  };
  const parts: Partial<Record<keyof Joined, unknown>> = {
    agents: { report },
    claims: { freeSilent },
    commands: { notify: async () => say('notified') },
  };
  const heartbeat = new Heartbeat({
    ...{ joined: parts as unknown as Joined, leased, monotonic: clock.monotonic },
    member: { leaseMs: LEASE_MS } as Member,
    report: () => ({}) as never,
    onSummary: () => say(`beat, silent ${summary.silent}`),
    onLost: (jobs) => void (jobs.length > 0 && say(`lost ${jobs.map(nameOf).join(' ')}`)),
    onFailure: ({ message }) => say(`failed: ${message}, has succeeded: ${heartbeat.hasSucceeded}`),
  });
  return { time, fleet, summary, leased, heartbeat, lines, pass };
}

/** `2@3` is the job 2 with the fencing token 3. */
const nameOf = ({ jobId, attempt }: LeasedJob) => `${jobId}@${attempt}`;
const jobOf = (word: string): TakenJob => {
  const [jobId, attempt = 1] = word.split('@');
  return { jobId: jobId as JobId, attempt: Number(attempt), mirror: null, isTakeover: false };
};

type Agent = ReturnType<typeof agentOf>;

async function tick({ heartbeat, pass }: Agent, afterMs: number): Promise<void> {
  pass(afterMs);
  heartbeat.tick();
  await heartbeat.ended();
}

const move =
  (event: Parameters<LeasedJobs['move']>[1]) =>
  ({ leased }: Agent, ...words: string[]) =>
    leased.move(words.map(jobOf), event);

const STEPS: Readonly<Record<string, (agent: Agent, ...words: string[]) => unknown>> = {
  follow: move('follow'),
  pause: move('pause'),
  give: move('give'),
  keep: move('keep'),
  add: ({ leased }, ...words) => leased.add(...words.map(jobOf)),
  remove: ({ leased }, id) => leased.remove(id as JobId),
  requeue: ({ leased }, id = '', isSame) => {
    leased.requeue(isSame === undefined ? jobOf(id) : (leased.get(id as JobId) ?? jobOf(id)));
  },
  states: ({ leased, lines }) =>
    lines.push(
      leased
        .all()
        .map((job) => `${nameOf(job)} ${leased.stateOf(job.jobId)}`)
        .join(', '),
    ),
  write: ({ leased, lines }, id) => {
    const line = () => {
      leased.require(id as JobId);
      return 'it may write';
    };
    try {
      lines.push(line());
    } catch (thrown) {
      const { code, message, hint } = asJobtailError(thrown);
      lines.push(`${code}: ${message} (${hint}), refused ${leased.refused}`);
    }
  },
  lease: ({ leased, heartbeat, lines }) =>
    lines.push(`valid ${leased.isValid}, ${leased.leaseAgeMs} ms old, may acquire ${heartbeat.mayAcquire}`),
  /** A response that comes after that of a later heartbeat. */
  late: ({ leased, time, pass }, seconds) => {
    const early = { ...time };
    pass(Number(seconds) * 1_000);
    leased.prolong(leased.moment());
    leased.prolong(early);
  },
  pass: ({ pass }, seconds) => pass(Number(seconds) * 1_000),
  clock: ({ time }, seconds) => {
    time.wall += Number(seconds) * 1_000;
  },
  tick: async (agent, times = '1', seconds = '1') => {
    for (let each = 0; each < Number(times); each++) await tick(agent, Number(seconds) * 1_000);
  },
  refresh: ({ heartbeat }) => heartbeat.refresh(),
  trip: ({ fleet }, seconds) => Object.assign(fleet, { tripMs: Number(seconds) * 1_000 }),
  down: ({ fleet }) => Object.assign(fleet, { outage: new JobtailError('unavailable', 'the database is down') }),
  up: ({ fleet }) => Object.assign(fleet, { outage: undefined }),
  freed: ({ fleet }, ...counts) => fleet.freed.push(...counts.map(Number)),
  own: ({ summary }, ...words) => Object.assign(summary, { own: words.map(jobOf) }),
  silent: ({ summary }, count) => Object.assign(summary, { silent: Number(count) }),
  restored: ({ summary }, is) => Object.assign(summary, { isRestored: is === 'true' }),
};

it('a lease counts, and jobs of silent agents are released, at the times that are written in lease-times.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'lease-times.txt'), async (written) => {
    const agent = agentOf();
    for (const step of written.split('; ')) {
      const [word = '', ...words] = step.split(' ');
      await (STEPS[word] ?? expect.fail(step))(agent, ...words);
    }
    return agent.lines;
  });
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
