/** One lease an agent: who takes jobs, who is offered none, and what keeps a lease alive. */
import { expect, vi } from 'vitest';
import type { LeasedJob } from '../../src/fleet/agents/agents.ts';
import type { Store } from '../../src/store/store.ts';
import { until } from '../support/e2e-until.ts';
import {
  clockAhead,
  type FleetParts,
  fastClock,
  fleetTest,
  type Line,
  LOCKED,
  orderFor,
  watches,
} from '../support/fleet-parts.ts';

async function fleetWith(fleet: FleetParts, jobs: number) {
  const joined = await fleet.ordered('command', ...Array.from({ length: jobs }, (_, index) => index + 1));
  const watch = (...numbers: number[]) => joined.commands.give(watches(...numbers));
  /** As `until`, while each agent reports at each look, not only when its next heartbeat is due. */
  const soon = (what: string, look: () => boolean | Promise<boolean>) =>
    until(what, async () => {
      await joined.commands.notify(joined.database);
      return await look();
    });
  return { ...joined, watch, soon };
}

const connectionsOf = (name: string) =>
  `SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'jobtail ${name}%' AND datname = current_database()`;

/** Pauses of an agent pass in a hundredth of their time, its lease is as long as it is. */
const FAST = { clock: fastClock(100), heartbeatMs: 1_000_000 };

fleetTest('an agent that cannot work hands its jobs over, says why, and gets its share again', async (fleet) => {
  const { agents, soon } = await fleetWith(fleet, 4);
  let trouble: string | undefined;
  const anna = await fleet.following(4, 'anna', { ...FAST, unready: () => trouble });
  const ben = fleet.start('ben', {});
  trouble = 'the service cannot be reached';
  await soon('the other one to follow all', () => ben.followed.size === 4);
  expect(await agents.all()).toMatchObject([{ lacks: trouble }, { lacks: null }]);
  trouble = undefined;
  await soon('it to have its share again', () => {
    const polled = { polledAt: FAST.clock.now(), grownAt: null, refused: 0, failures: 0, error: null };
    for (const jobId of anna.followed) anna.store.jobs.endRun(jobId, polled);
    return anna.followed.size === 2;
  });
});

fleetTest('a heartbeat waits for no data, and after each outage new jobs are followed', async (fleet) => {
  const { commands, database, watch } = await fleetWith(fleet, 3);
  const relay = await fleet.relay();
  const clock = clockAhead();
  const anna = fleet.start('anna', { clock, heartbeatMs: 100_000, port: relay.port });
  /** The next heartbeat is due. */
  const hurry = () => (clock.aheadMs += 40_000);
  expect([anna.member.sharers, anna.member.numbers], 'before it joined').toEqual([
    1,
    {
      ...{ isUp: false, leaseAgeSeconds: 0, takeovers: 0, lost: 0, refusedWrites: 0, agents: 0 },
      ...{ jobs: { self: 0, others: 0, nobody: 0 }, waitingSeconds: 0, notFollowed: 0 },
    },
  ]);
  await until('all to be followed', () => anna.followed.size === 3);
  const session = await fleet.session();
  await session.query('BEGIN');
  await session.query('SELECT 1 FROM jobtail.jobs FOR NO KEY UPDATE');
  const { jobId } = orderFor(1);
  await fleet.query(`INSERT INTO jobtail.orders (job_id, kind) VALUES ($1, 'resume')`, [jobId]);
  await commands.notify(database);
  const seenAt = async () => (await fleet.query<{ at: Date }>('SELECT seen_at AS at FROM jobtail.agents'))[0]?.at;
  for (let renewed = 0; renewed < 2; renewed++) {
    const before = (await seenAt())?.getTime();
    hurry();
    await until('the lease to be renewed', async () => (await seenAt())?.getTime() !== before);
  }
  expect(anna.member.numbers).toMatchObject({ lost: 0, jobs: { self: 3 } });
  expect(anna.followed.size).toBe(3);
  await session.query('COMMIT');
  const logged = (what: string) => anna.log.filter(({ message }) => message === what).length;
  for (const outage of [1, 2]) {
    relay.cut();
    hurry();
    await until('the outage to be logged', () => logged('operation failed') >= outage && !anna.member.numbers.isUp);
    const error = { code: 'fault', message: `of ${outage}`, hint: null, since: 1 } as const;
    anna.store.jobs.endRun(jobId, { polledAt: 1, grownAt: null, refused: 0, failures: 1, error });
    // Who is to tell the next owner of a key goes on without it.
    await anna.member.keep(jobId);
    relay.open();
    await until('its end to be logged', () => logged('operation recovered') >= outage && anna.member.numbers.isUp);
    await watch(3 + outage);
    await until('a new job to be followed', () => anna.followed.size === 3 + outage);
    const written = `SELECT 1 FROM jobtail.rows WHERE row ->> 'error' LIKE '%of ${outage}%'`;
    await until('what changed meanwhile to be written', async () => (await fleet.query(written)).length === 1);
  }
});

fleetTest('an agent whose row is of an older backup, or missing, joins again', async (fleet) => {
  const { soon } = await fleetWith(fleet, 2);
  const anna = await fleet.following(2, 'anna', FAST);
  let failure: unknown;
  anna.member.ended.catch((error: unknown) => {
    failure = error;
  });
  const instance = async () =>
    (await fleet.query<{ instance: string }>('SELECT instance FROM jobtail.agents'))[0]?.instance;
  const own = await instance();
  const files = async () => (await fleet.query(`SELECT 1 FROM jobtail.rows WHERE kind = 'live_files'`)).length;
  for (const restored of [
    `UPDATE jobtail.agents SET instance = 'of an earlier process'`,
    'DELETE FROM jobtail.agents',
    // Of a moment after the last heartbeat.
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'jobtail anna heartbeats' AND datname = current_database()`,
  ]) {
    await soon('its rows', async () => (await files()) === 8);
    await fleet.query(`DELETE FROM jobtail.rows; ${restored}`);
    await soon('it to be back', async () => (await instance()) === own);
    await soon('its rows to be back', async () => (await files()) === 8);
  }
  await soon('both to be followed again', () => anna.followed.size === 2);
  expect(failure).toBeUndefined();
  // Of a process with a copy of its state, which took the name just now.
  await fleet.query(`UPDATE jobtail.agents SET instance = 'of a copy', seen_at = clock_timestamp()`);
  await soon('it to end', () => failure !== undefined);
  expect(String(failure)).toContain('another agent of the fleet is called anna (host here, pid');
  expect(await instance()).toBe('of a copy');
});

fleetTest('an agent without the mirrors of the others is refused, unless each has its own', async (fleet) => {
  const anna = fleet.start('anna', {});
  await until('the first one to be in', () => anna.log.some(({ message }) => message === 'joined the fleet'));
  const ben = fleet.start('ben', { mirror: 'another', ...FAST });
  await expect(ben.member.ended).rejects.toThrow('the mirror directory of this machine is not that of the agent anna');
  const refusals = () => ben.log.filter(({ message }) => message === 'operation still failing').length;
  await until('more attempts', () => refusals() >= 3);
  await ben.member.stop();
  await until('their connections to be closed', async () => (await fleet.query(connectionsOf('ben'))).length === 0);
  const cleo = fleet.start('cleo', { mirror: 'another', separateMirrors: true });
  await until('it to be in', () => cleo.log.some(({ message }) => message === 'joined the fleet'));
});

fleetTest('what the database tells an agent waits for no interval', async (fleet) => {
  const { commands } = await fleetWith(fleet, 1);
  const rules: (string | undefined)[] = [];
  const onRefresh = () => void rules.push(store.watchMine.of('command')?.include[0]);
  // No interval passes.
  const clock = { ...clockAhead(), monotonic: () => 1_000_000 };
  let reports = 0;
  const pollAgeMs = () => {
    reports += 1;
    return null;
  };
  const { store, followed } = fleet.start('anna', { clock, onRefresh, pollAgeMs });
  await until('the job to be followed', () => followed.size === 1);
  await commands.give([{ jobId: orderFor(1).jobId, kind: 'sync' }]);
  await until('the order to be asked for', () => store.requests.open('pass').length === 1);
  const client = await fleet.client();
  await client.setRule({ include: ['mine*'], exclude: [], maxAgeMs: 1, maxJobs: 1, since: 1, source: 'command' });
  await until('the agent to be asked to go by the rule', () => rules.includes('mine*'));
  await client.setRule(undefined);
  await until('the agent to be asked to go on without it', () => rules.at(-1) === undefined);
  // And once: what is under way may report once more, and the rounds after it report nothing.
  const rounds = vi.spyOn(store.jobs, 'states').mock.calls;
  let last = { reports: -1, rounds: 0 };
  await until('three rounds that report nothing', () => {
    if (reports !== last.reports) last = { reports, rounds: rounds.length };
    return rounds.length - last.rounds >= 3;
  });
});

fleetTest('an agent that stops writes its last rows, and leaves with its connections', async (fleet) => {
  const { agents, soon } = await fleetWith(fleet, 1);
  const { member, store, log } = await fleet.following(1, 'anna', {});
  let isAsked = false;
  void member.ended.then(() => (isAsked = true));
  await soon('a heartbeat', async () => (await agents.all()).length === 1);
  expect(isAsked).toBe(false);
  await agents.askToDrain('anna');
  await soon('it to be asked to drain', () => isAsked);
  store.jobs.endRun(orderFor(1).jobId, { polledAt: 7_000, grownAt: null, refused: 0, failures: 0, error: null });
  await member.stop();
  const polled = await fleet.query(`SELECT row ->> 'polled_at' AS at FROM jobtail.rows WHERE kind = 'jobs'`);
  expect(polled).toEqual([{ at: '7000' }]);
  expect(await fleet.query('SELECT is_ended FROM jobtail.agents')).toEqual([{ is_ended: true }]);
  await until('no connection', async () => (await fleet.query(connectionsOf('anna'))).length === 0);
  expect(log.filter(({ level }) => level !== 'info')).toEqual([]);
});

fleetTest('the next process of an agent continues at once, with a lease from its request to join', async (fleet) => {
  await fleetWith(fleet, 1);
  const { claims } = await fleet.join('anna');
  const [job] = await claims.take(1);
  const prepare = ({ jobs, fleetLeases }: Store) => {
    jobs.watch(orderFor(1), 0);
    fleetLeases.save(job as LeasedJob);
  };
  const session = await fleet.session();
  await session.query('BEGIN');
  await session.query('LOCK TABLE jobtail.agents IN SHARE MODE');
  const clock = clockAhead();
  // The lease is longer than the test.
  const { member, log, followed } = fleet.start('anna', { clock, heartbeatMs: 600_000, prepare });
  const ages = new Map<string, number>();
  Object.assign(log, { push: ({ message }: Line) => void ages.set(message, member.numbers.leaseAgeSeconds) });
  await until('the request', async () => (await fleet.query(LOCKED)).length > 0);
  clock.aheadMs = 5_000;
  await session.query('COMMIT');
  await until('it to follow', () => followed.size === 1);
  expect(ages.get('joined the fleet'), 'before the first heartbeat').toBeGreaterThanOrEqual(5);
});

fleetTest('an agent whose lease may be over writes nothing, and its last rows when it stops', async (fleet) => {
  await fleetWith(fleet, 1);
  const clock = clockAhead();
  const { member, store, followed, log } = await fleet.following(1, 'anna', { clock, heartbeatMs: 600_000 });
  const { jobId } = orderFor(1);
  await until('its first row', async () => (await fleet.query('SELECT 1 FROM jobtail.rows')).length > 0);
  const session = await fleet.session();
  await session.query('BEGIN');
  await session.query('SELECT 1 FROM jobtail.agents FOR UPDATE');
  // Its next heartbeat gets no response.
  clock.aheadMs = 600_000;
  const [file] = store.liveFiles.ofJob(jobId);
  await expect(member.fence(file as NonNullable<typeof file>)).rejects.toThrow('lease possibly expired');
  await until('the job to be paused', () =>
    log.some(({ message }) => message === 'jobs paused, lease possibly expired'),
  );
  await until('it to be left', () => followed.size === 0);
  expect(member.owns(jobId)).toBe(false);
  expect(member.numbers).toMatchObject({ notFollowed: 1, refusedWrites: 1, jobs: { self: 1 } });
  const error = { code: 'fault', message: 'its last failure', hint: null, since: 1 } as const;
  store.jobs.endRun(jobId, { polledAt: 1, grownAt: null, refused: 0, failures: 1, error });
  const stopped = member.stop();
  const written = `SELECT 1 FROM jobtail.rows WHERE row ->> 'error' LIKE '%its last failure%'`;
  await until('its last row', async () => (await fleet.query(written)).length === 1);
  await session.query('COMMIT');
  await stopped;
  expect(await fleet.query('SELECT is_ended FROM jobtail.agents')).toEqual([{ is_ended: true }]);
});
