/** One agent of a fleet by itself: what it takes, finishes and says. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import type { Remote } from '../../src/agent/ports/server.ts';
import { Leases } from '../../src/agent/results/download/leases.ts';
import { commandLog } from '../../src/cli/process.ts';
import { JobtailError } from '../../src/errors.ts';
import { systemClock } from '../../src/system/clock.ts';
import { until } from '../support/e2e-until.ts';
import { FleetParts, fastClock, LOCKED, orderFor, watches } from '../support/fleet-parts.ts';
import { NEW_RESULT } from '../support/live-place.ts';
import { needs } from '../support/needs.ts';

const PG = needs('postgres');

/** More than are ordered, and taken, at once. */
const JOBS = 600;

it.concurrent('a command that comes while a job is finished is executed, and nothing fails', PG, async (test) => {
  const fleet = await FleetParts.make(test);
  const { commands } = await fleet.ordered('command', 1);
  const [{ jobId }, given] = [orderFor(1), [] as string[]];
  const { log, store, followed } = fleet.start('anna', {
    onRelease: async () => {
      if (given.length === 0) given.push(...(await commands.give([{ jobId, kind: 'resume' }])));
    },
  });
  await until('the job to be followed', () => followed.has(jobId));
  // What the agent does when all is proven.
  store.transaction(() => store.jobs.setState(jobId, 'settled'));
  await until('the order', () => given.length === 1);
  await until('its answer', async () => (await commands.answerOf(given[0] ?? '')) !== undefined);
  await until('the job to be followed again', () => followed.has(jobId));
  expect(store.jobs.get(jobId)?.state).toBe('watched');
  expect(log.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
});

it.concurrent('an agent on a full disk takes no jobs, and takes them again when there is room', PG, async (test) => {
  const fleet = await FleetParts.make(test);
  const { commands } = await fleet.ordered('command', 1);
  let isFull = true;
  const { log, followed } = fleet.start('anna', {
    ...{ clock: fastClock(20), heartbeatMs: 20_000 },
    prepare({ portableRows }) {
      const forget = portableRows.forget.bind(portableRows);
      vi.spyOn(portableRows, 'forget').mockImplementation((jobId) => {
        if (isFull) throw new JobtailError('disk-full', 'no room left');
        forget(jobId);
      });
    },
  });
  await until('it to be not ready', () => log.some(({ message }) => message === 'agent not ready'));
  await until('it to report a job without its rows', async () => {
    return (await fleet.query('SELECT 1 FROM jobtail.agents WHERE not_followed = 1')).length === 1;
  });
  isFull = false;
  await until('it to be ready', () => log.some(({ message }) => message === 'agent takes jobs again'));
  await commands.give(watches(2));
  await until('both jobs to be followed', () => followed.size === 2);
});

it.concurrent('rows that the database refuses are a failure until they are written', PG, async (test) => {
  const fleet = await FleetParts.make(test);
  await fleet.ordered('command', 1);
  const { jobId } = orderFor(1);
  const { member, store, log, followed } = fleet.start('anna', { clock: fastClock(20), heartbeatMs: 20_000 });
  const grow = (grownAt: number) =>
    store.jobs.endRun(jobId, { polledAt: 1, grownAt, refused: 0, failures: 0, error: null });
  const failures = () => log.filter(({ message }) => /^operation (failed|recovered)/.test(message));
  await until('the job to be followed', () => followed.has(jobId));
  await fleet.query('ALTER TABLE jobtail.rows ADD CONSTRAINT nothing CHECK (kind IS NULL) NOT VALID');
  grow(1);
  await until('several attempts', () => log.filter(({ text }) => text.includes('nothing')).length >= 5);
  expect(failures().map(({ message }) => message)).toEqual(['operation failed']);
  await fleet.query('ALTER TABLE jobtail.rows DROP CONSTRAINT nothing');
  await until('the end of it', () => failures().length > 1);
  expect(await fleet.query(`SELECT row ->> 'grown_at' AS at FROM jobtail.rows WHERE kind = 'jobs'`)).toEqual([
    { at: '1' },
  ]);
  // An agent that stops leaves the fleet, whatever the database refuses.
  await fleet.query('ALTER TABLE jobtail.rows ADD CONSTRAINT nothing CHECK (kind IS NULL) NOT VALID');
  grow(2);
  await member.stop();
  expect(await fleet.query('SELECT is_ended FROM jobtail.agents')).toEqual([{ is_ended: true }]);
});

it.concurrent('a job that is over stays while a notification of it waits', PG, async (test) => {
  const fleet = await FleetParts.make(test);
  await fleet.ordered('command', 1, 2);
  const [waits, other] = [orderFor(1), orderFor(2)];
  const { store, followed } = fleet.start('anna', {
    unsent: ({ outbox }) => new Set(outbox.waitingJobs(['rule'])),
  });
  await until('the jobs to be followed', () => followed.size === 2);
  const { jobId } = waits;
  const event = { id: randomUUID(), type: 'finished', time: new Date().toISOString(), count: 1, jobId } as const;
  const at = { madeAt: Date.now(), dueAt: Date.now(), attempts: 0, lastError: null };
  const delivery = { deliveryId: randomUUID(), jobId, rule: 'rule', event, ...at };
  // Of a rule that no configuration has, none is ever sent.
  const former = { ...delivery, deliveryId: randomUUID(), jobId: other.jobId, rule: 'former' };
  store.outbox.add([delivery, former]);
  for (const body of [waits, other]) store.transaction(() => store.jobs.setState(body.jobId, 'settled'));
  await until('the other job to be done', () => store.jobs.get(other.jobId) === undefined);
  expect(store.outbox.all()).toMatchObject([{ deliveryId: delivery.deliveryId }]);
  store.outbox.remove(delivery);
  await until('this one, too', () => store.jobs.get(jobId) === undefined);
});

it.concurrent('jobs of before become jobs of the fleet, also settled and removed ones', PG, async (test) => {
  const fleet = await FleetParts.make(test);
  const [running, settled, removed] = [orderFor(1), orderFor(2), orderFor(3)];
  const { followed } = fleet.start('anna', {
    configured: [settled, removed],
    prepare({ jobs, results }) {
      for (const order of [running, settled, removed]) jobs.watch(order, 0);
      jobs.setState(settled.jobId, 'settled');
      jobs.forget(removed.jobId, 0);
      results.saveAll([{ ...NEW_RESULT, jobId: settled.jobId }]);
    },
  });
  await until('the running one to be followed', () => followed.has(running.jobId));
  await until(
    'the configuration to be placed',
    async () => (await fleet.query('SELECT 1 FROM jobtail.configured')).length === 2,
  );
  expect(await fleet.query('SELECT job_id, state FROM jobtail.jobs ORDER BY job_id')).toEqual([
    { job_id: running.jobId, state: 'watched' },
    { job_id: settled.jobId, state: 'settled' },
    { job_id: removed.jobId, state: 'forgotten' },
  ]);
  expect(await fleet.query(`SELECT job_id FROM jobtail.rows WHERE kind = 'result_files'`)).toHaveLength(1);
  expect(followed).toEqual(new Set([running.jobId]));
});

it.concurrent('commands that wait for their answers block no others', PG, async (test) => {
  const fleet = await FleetParts.make(test);
  const { commands } = await fleet.ordered('command', 1);
  const [{ jobId }, another] = [orderFor(1), orderFor(2)];
  const { followed, store } = fleet.start('anna', {});
  await until('the job to be followed', () => followed.has(jobId));
  // Nobody answers them.
  await commands.give(Array.from({ length: 600 }, () => ({ jobId, kind: 'sync' })));
  await until('all of them to be asked for', () => store.requests.open('pass').length === 600);
  await commands.give(watches(2));
  await until('the other job to be followed', () => store.jobs.get(another.jobId) !== undefined);
});

it.concurrent('an agent that stops gives nothing away that it may still write', PG, async (test) => {
  const fleet = await FleetParts.make(test);
  await fleet.ordered('command', 1);
  const { jobId } = orderFor(1);
  const { member, followed, log } = fleet.start('anna', {});
  await until('the job to be followed', () => followed.has(jobId));
  // A round that is about to give the job away waits for this before, to execute a command.
  const session = await fleet.session();
  await session.query('BEGIN');
  await session.query('SELECT 1 FROM jobtail.jobs FOR NO KEY UPDATE');
  await fleet.query(`INSERT INTO jobtail.orders (job_id, kind) VALUES ($1, 'resume')`, [jobId]);
  await fleet.query(`SELECT pg_notify('jobtail_orders', '')`);
  await until('the round to wait', async () => {
    return (await fleet.query(LOCKED)).length > 0;
  });
  const drained = member.drain();
  member.detach();
  await session.query('COMMIT');
  await until('the round to go on', async () => {
    const open = await fleet.query(`SELECT 1 FROM jobtail.orders WHERE answer IS NULL`);
    return open.length === 0;
  });
  await sleep(500);
  expect(await fleet.query('SELECT is_draining FROM jobtail.agents')).toEqual([{ is_draining: true }]);
  expect(followed).toEqual(new Set([jobId]));
  expect(await fleet.query('SELECT how FROM jobtail.attempts')).toEqual([{ how: null }]);
  member.attach({ take: () => {}, release: async () => {}, refresh: () => {} }, [], () => new Set());
  await drained;
  expect(log.at(-1)).toMatchObject({ message: 'drained', level: 'info' });
  expect(await fleet.query('SELECT how FROM jobtail.attempts')).toEqual([{ how: 'handed-over' }]);
});

it.concurrent('jobs of a long configuration are all followed', PG, async (test) => {
  const fleet = await FleetParts.make(test);
  const configured = Array.from({ length: JOBS }, (_, index) => orderFor(index + 1));
  const { followed } = fleet.start('anna', { configured });
  const count = async () =>
    (await fleet.query<{ count: number }>('SELECT count(*)::int AS count FROM jobtail.configured'))[0]?.count;
  await until('all of them to be followed', () => followed.size === JOBS);
  expect(await count()).toBe(JOBS);
});

it.concurrent('what goes wrong while a lost job is left alone is said, and the agent goes on', PG, async (test) => {
  const fleet = await FleetParts.make(test);
  const { commands } = await fleet.ordered('command', 1);
  const { jobId } = orderFor(1);
  let fails = true;
  const { member, log, followed, store } = fleet.start('anna', {
    onRelease: async () => {
      if (fails) throw new JobtailError('disk-full', 'there is no room for its last bytes');
    },
  });
  await until('the job to be followed', () => followed.has(jobId));
  // As if another one had taken it, and given it back.
  await fleet.query('UPDATE jobtail.jobs SET owner = NULL, attempt = attempt + 1');
  const [row] = store.liveFiles.ofJob(jobId);
  await expect(member.fence(row as NonNullable<typeof row>)).rejects.toMatchObject({ code: 'superseded' });
  expect(member.numbers.refusedWrites).toBe(1);
  await commands.give([{ jobId, kind: 'resume' }]);
  await until('it to be lost', async () => {
    // Without one, agents look when their next heartbeat is due.
    await commands.give([{ jobId, kind: 'resume' }]);
    return member.numbers.lost === 1;
  });
  await until('the failure to be said', () => log.some(({ text }) => text.includes('no room for its last bytes')));
  fails = false;
  await until('it to be followed again', () => store.fleetLeases.all()[0]?.attempt === 3);
});

it.concurrent('a temporary key is known to the next owner before it is used', PG, async (test) => {
  const fleet = await FleetParts.make(test);
  const numbers = [1, 2, 3, 4, 5];
  const ids = numbers.map((number) => orderFor(number).jobId);
  await fleet.ordered('command', ...numbers);
  const { member, store, followed } = fleet.start('anna', {});
  await until('the jobs to be followed', () => followed.size === ids.length);
  const leases = new Leases({ store, clock: systemClock, log: commandLog() });
  leases.report = (jobId) => member.keep(jobId);
  const method = { serverHostname: 'host', sharedBasepath: '/', protocol: 'SftpScp' } as const;
  for (const jobId of ids) {
    const credentials = { username: 'user', privateKey: 'private', publicKey: `public of ${jobId}` };
    const remote = { getTransferMethod: async () => ({ ...method, credentials }) } as Partial<Remote> as Remote;
    await leases.take(jobId, remote, new AbortController().signal);
    const rows = await fleet.query<{ row: object }>(
      `SELECT row FROM jobtail.rows WHERE job_id = $1 AND kind = 'transfer_leases'`,
      [jobId],
    );
    expect(rows).toMatchObject([{ row: { state: 'open', public_key: `public of ${jobId}` } }]);
    expect(JSON.stringify(rows)).not.toContain('private');
  }
});

it.concurrent('the numbers of an agent are those of its fleet', PG, async (test) => {
  const fleet = await FleetParts.make(test);
  const { commands, database } = await fleet.ordered('command', 1, 2, 3);
  let aheadMs = 0;
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs };
  const { member, followed } = fleet.start('anna', { clock, maxJobs: 1 });
  await until('one to be followed', () => followed.size === 1);
  await fleet.query(`UPDATE jobtail.jobs SET waiting_since = now() - interval '100 s' WHERE owner IS NULL`);
  // It is alive, and not ready: it takes no jobs.
  await fleet.query(`INSERT INTO jobtail.agents (name, state_id, instance, lease_ms, most_jobs, capacity, about, format)
    VALUES ('carl', 'c', 'c', 3600000, 9, 0, '{}', 5)`);
  const second = 'SELECT min(job_id) FROM jobtail.jobs WHERE owner IS NULL';
  await fleet.query(`UPDATE jobtail.jobs SET owner = 'ben', waiting_since = NULL WHERE job_id = (${second})`);
  await until('a heartbeat', async () => {
    await commands.notify(database);
    return member.numbers.jobs.others === 1;
  });
  aheadMs = 5_000;
  const { leaseAgeSeconds, waitingSeconds, ...numbers } = member.numbers;
  expect(numbers).toEqual({
    ...{ isUp: true, takeovers: 0, lost: 0, refusedWrites: 0, agents: 1, notFollowed: 0 },
    jobs: { self: 1, others: 1, nobody: 1 },
  });
  expect([leaseAgeSeconds - 5, waitingSeconds - 100].filter((seconds) => seconds < 0 || seconds > 300)).toEqual([]);
});
