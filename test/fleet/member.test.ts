/** One agent of a fleet by itself: what it takes, finishes and says. */
import { expect } from 'vitest';
import type { Remote } from '../../src/agent/ports/server.ts';
import { Leases } from '../../src/agent/results/download/leases.ts';
import { commandLog } from '../../src/cli/process.ts';
import type { JobId } from '../../src/job.ts';
import type { LiveFileRow } from '../../src/store/rows.ts';
import { systemClock } from '../../src/system/clock.ts';
import { until } from '../support/e2e-until.ts';
import { clockAhead, fastClock, fleetTest, orderFor, watches } from '../support/fleet-parts.ts';
import { NEW_RESULT } from '../support/live-place.ts';

/** More than are ordered, and taken, at once. */
const JOBS = 600;

fleetTest('rows that the database refuses are a failure until they are written', async (fleet) => {
  const { commands } = await fleet.ordered('command', 1);
  const { jobId } = orderFor(1);
  const { member, store, log } = await fleet.following(1, 'anna', { clock: fastClock(20), heartbeatMs: 20_000 });
  const grow = (grownAt: number) =>
    store.jobs.endRun(jobId, { polledAt: 1, grownAt, refused: 0, failures: 0, error: null });
  const failures = () => log.filter(({ message }) => /^operation (failed|recovered)/.test(message));
  await fleet.query('ALTER TABLE jobtail.rows ADD CONSTRAINT nothing CHECK (kind IS NULL) NOT VALID');
  grow(1);
  await until('several attempts', () => log.filter(({ text }) => text.includes('nothing')).length >= 5);
  expect(failures().map(({ message }) => message)).toEqual(['operation failed']);
  await commands.give(watches(2));
  const behind = 'SELECT 1 FROM jobtail.agents WHERE not_followed = 1';
  await until('a job that is not followed yet to be reported', async () => (await fleet.query(behind)).length === 1);
  await fleet.query('ALTER TABLE jobtail.rows DROP CONSTRAINT nothing');
  await until('the end of it', () => failures().length > 1);
  const grown = `SELECT row ->> 'grown_at' AS at FROM jobtail.rows WHERE kind = 'jobs' AND job_id = '1'`;
  expect(await fleet.query(grown)).toEqual([{ at: '1' }]);
  // An agent that stops leaves the fleet, whatever the database refuses.
  await fleet.query('ALTER TABLE jobtail.rows ADD CONSTRAINT nothing CHECK (kind IS NULL) NOT VALID');
  grow(2);
  await member.stop();
  expect(await fleet.query('SELECT is_ended FROM jobtail.agents')).toEqual([{ is_ended: true }]);
});

fleetTest('jobs of before become jobs of the fleet, also settled and removed ones', async (fleet) => {
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

fleetTest('commands that wait for their answers block no others', async (fleet) => {
  const { commands } = await fleet.ordered('command', 1);
  const [{ jobId }, another] = [orderFor(1), orderFor(2)];
  const { store } = await fleet.following(1, 'anna', {});
  // Nobody answers them.
  await commands.give(Array.from({ length: 600 }, () => ({ jobId, kind: 'sync' })));
  await until('all of them to be asked for', () => store.requests.open('pass').length === 600);
  await commands.give(watches(2));
  await until('the other job to be followed', () => store.jobs.get(another.jobId) !== undefined);
});

fleetTest('jobs of a long configuration are all followed', async (fleet) => {
  const configured = Array.from({ length: JOBS }, (_, index) => orderFor(index + 1));
  await fleet.following(JOBS, 'anna', { configured });
  expect(await fleet.query('SELECT FROM jobtail.configured')).toHaveLength(JOBS);
});

fleetTest('a temporary key is known to the next owner before it is used', async (fleet) => {
  const { jobId } = orderFor(1);
  await fleet.ordered('command', 1);
  const { member, store } = await fleet.following(1, 'anna', {});
  const leases = new Leases({ store, clock: systemClock, log: commandLog() });
  leases.report = (id) => member.keep(id);
  const credentials = { username: 'user', privateKey: 'private', publicKey: 'public' };
  const method = { serverHostname: 'host', sharedBasepath: '/', protocol: 'SftpScp', credentials } as const;
  const remote = { getTransferMethod: async () => method } as Partial<Remote> as Remote;
  await leases.take(jobId, remote, new AbortController().signal);
  const rows = await fleet.query<{ row: object }>(`SELECT row FROM jobtail.rows WHERE kind = 'transfer_leases'`);
  expect(rows).toMatchObject([{ row: { state: 'open', public_key: 'public' } }]);
  expect(JSON.stringify(rows)).not.toContain('private');
});

fleetTest('the numbers of an agent are those of its fleet', async (fleet) => {
  const { commands, database } = await fleet.ordered('command', 1, 2, 3);
  const clock = clockAhead();
  const { member, store, followed } = await fleet.following(1, 'anna', { clock, maxJobs: 1 });
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
  clock.aheadMs = 5_000;
  const { leaseAgeSeconds, waitingSeconds, ...numbers } = member.numbers;
  expect(numbers).toEqual({
    ...{ isUp: true, takeovers: 0, lost: 0, refusedWrites: 0, agents: 1, notFollowed: 0 },
    jobs: { self: 1, others: 1, nobody: 1 },
  });
  expect([leaseAgeSeconds - 5, waitingSeconds - 100].filter((seconds) => seconds < 0 || seconds > 300)).toEqual([]);
  // As if another one had taken it: a round that finds out about it removes its rows here.
  const [row] = store.liveFiles.ofJob([...followed][0] as JobId) as [LiveFileRow];
  await fleet.query(`UPDATE jobtail.jobs SET owner = 'ben', attempt = attempt + 1 WHERE owner = 'anna'`);
  await expect(member.fence(row)).rejects.toMatchObject({ code: 'superseded' });
  expect(member.numbers).toMatchObject({ refusedWrites: 1, lost: 1, jobs: { self: 0 } });
});

fleetTest('a drain ends after a minute with the jobs that could not be handed off', async (fleet) => {
  await fleet.ordered('command', 1);
  const clock = fastClock(100);
  const { member, log } = await fleet.following(1, 'anna', { clock, heartbeatMs: 1_000_000 });
  member.detach();
  const before = clock.monotonic();
  await member.drain();
  expect(clock.monotonic() - before).toBeGreaterThanOrEqual(60_000);
  const message = 'jobs not handed off, other agents acquire them later';
  expect(log.at(-1)).toMatchObject({ level: 'warn', message });
});
