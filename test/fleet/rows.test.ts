/** A whole fleet over rows that another role wrote into its database, and over many orders. */
import { expect } from 'vitest';
import { FleetClient } from '../../src/fleet/commands/client.ts';
import { FleetJobs } from '../../src/fleet/commands/fleet-jobs.ts';
import type { JobId } from '../../src/job.ts';
import { until } from '../support/e2e-until.ts';
import { fleetTest, memberOf, orderFor } from '../support/fleet-parts.ts';
import { jobOf } from '../support/model-remote.ts';

const HOSTILE = '../OUT';

fleetTest('rows that are malformed keep no other job from being followed or shown', async (fleet) => {
  const { commands } = await fleet.join('command');
  const [broken, sound, later] = [orderFor(1), orderFor(2), orderFor(3)];
  for (const jobId of [HOSTILE as JobId, broken.jobId, sound.jobId])
    await commands.give([{ jobId, kind: 'watch', body: { ...orderFor(Number(jobId)), jobId } }]);
  const rows = [
    [broken.jobId, 'live_files', '["../9001","stdout"]', { job_id: '1', task_id: '../9001', file: 'stdout' }],
    [broken.jobId, 'live_files', '["9001","stderr"]', { job_id: '1', task_id: '9001', file: 'stderr', position: 'x' }],
    [broken.jobId, 'of_a_newer_agent', '[]', { job_id: '1' }],
    [HOSTILE, 'jobs', '[]', { job_id: HOSTILE, state: 'watched' }],
  ];
  for (const [jobId, kind, key, row] of rows)
    await fleet.query('INSERT INTO jobtail.rows VALUES ($1, $2, $3, $4)', [jobId, kind, key, JSON.stringify(row)]);
  await fleet.query(`INSERT INTO jobtail.orders (job_id, kind) VALUES ($1, 'of-a-newer-agent')`, [broken.jobId]);
  await fleet.query(`INSERT INTO jobtail.rules (rule) VALUES ('{"include": 5}')`);
  const { log, followed, store } = fleet.start('anna', {});
  await until('both to be followed', () => followed.has(broken.jobId) && followed.has(sound.jobId));
  await commands.give([{ jobId: later.jobId, kind: 'watch', body: later }]);
  await until('a later one to be followed', () => followed.has(later.jobId));
  expect([...followed].sort()).toEqual(['1', '2', '3']);
  expect(store.liveFiles.ofJob(broken.jobId).every(({ taskId }) => taskId === '9001')).toBe(true);
  await until('the order to be answered', async () => {
    const open = await fleet.query(`SELECT 1 FROM jobtail.orders WHERE kind = 'of-a-newer-agent' AND answer IS NULL`);
    return open.length === 0;
  });
  const ignored = log.filter(({ message }) => message === 'row of the database ignored');
  expect(ignored.length).toBeGreaterThan(3);
  expect(ignored.filter(({ text }) => !text.includes('the fleet'))).toEqual([]);
  expect(log.filter(({ level }) => level === 'error')).toEqual([]);
  // No agent has or awaits the job with a malformed id.
  const malformed = await fleet.query('SELECT owner, waiting_since FROM jobtail.jobs WHERE job_id = $1', [HOSTILE]);
  expect(malformed).toEqual([{ owner: null, waiting_since: null }]);

  const reports: string[] = [];
  const onIgnored = (what: string) => void reports.push(what);
  const client = await FleetClient.open({ ...fleet.address, onIgnored });
  const shown = (await client.jobs()).jobs.all();
  expect(shown.map(({ jobId }) => jobId).sort()).toEqual(['1', '2', '3']);
  expect((await client.owners()).map(({ jobId }) => jobId)).toEqual(['1', '2', '3']);
  expect(reports.length).toBeGreaterThan(2);
  await client.close();
});

fleetTest('nothing that another role put into the schema public is run', async (fleet) => {
  await fleet.query('CREATE TABLE public.loot (what text)');
  const steal = (what: string) =>
    `LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.loot VALUES ('${what}'); RETURN NULL; END $$`;
  await fleet.query(`CREATE FUNCTION public.hashtextextended(text, integer) RETURNS bigint ${steal('function')}`);
  await fleet.query(`CREATE FUNCTION public.times(integer, interval) RETURNS interval ${steal('operator')}`);
  await fleet.query('CREATE OPERATOR public.* (LEFTARG = integer, RIGHTARG = interval, FUNCTION = public.times)');
  const { commands } = await fleet.join('command');
  await commands.give([{ jobId: orderFor(1).jobId, kind: 'watch', body: orderFor(1) }]);
  const { member, followed } = fleet.start('anna', {});
  await until('the job to be followed', () => followed.has(orderFor(1).jobId));
  await member.knownJobs.follow([{ ...orderFor(2), source: 'mine' }], 10);
  await until('the other to be followed', () => followed.has(orderFor(2).jobId));
  expect(await fleet.query('SELECT * FROM public.loot')).toEqual([]);
});

fleetTest('many jobs are ordered some at a time, as many as the rule allows', async (fleet) => {
  const joined = await fleet.join('anna');
  const knownJobs = new FleetJobs(() => joined);
  const orders = Array.from({ length: 1_200 }, (_, index) => ({ ...orderFor(index + 1), source: 'mine' as const }));
  expect(await knownJobs.follow(orders, 1_100)).toBe(1_100);
  const given = await fleet.query<{ jobs: number }>(
    'SELECT count(*)::int AS jobs FROM jobtail.orders GROUP BY xmin::text ORDER BY jobs',
  );
  // By transaction.
  expect(given.map(({ jobs }) => jobs)).toEqual([100, 500, 500]);
  expect(await knownJobs.follow(orders, 1_100)).toBe(0);
  const [first, second] = [orderFor(1).jobId, orderFor(2).jobId];
  const startTime = { text: '2026-11-05T12:00:00', ms: null };
  const information = JSON.stringify({ ...jobOf(first, 'Finished'), startTime });
  await fleet.query(`UPDATE jobtail.jobs SET state = 'settled' WHERE job_id IN ('1', '2')`);
  const row = JSON.stringify({ job_id: first, information });
  await fleet.query(`INSERT INTO jobtail.rows VALUES ('1', 'job_information', '[]', $1)`, [row]);
  expect([...(await knownJobs.settled())].sort()).toEqual([
    [first, startTime.text],
    [second, null],
  ]);
});

fleetTest('an agent is shown as it reports, has a name of its own, and drains until it joins again', async (fleet) => {
  const { agents } = await fleet.join('command');
  const anna = memberOf('anna');
  await agents.join(anna);
  const joinedAt = agents.seenAt;
  expect(await agents.join({ ...anna, stateId: 'b', instance: 'b' })).toBe(false);
  expect(await agents.nameTaken('anna')).toMatchObject({
    ...{ code: 'locked', message: 'another agent of the fleet is called anna (host here, pid 1)' },
    hint: 'give each agent a name of its own: fleet.name',
  });
  await agents.requireSameMirror({ ...anna, name: 'bert' });
  await expect(agents.requireSameMirror({ ...anna, name: 'bert', mirror: '/b' })).rejects.toMatchObject({
    ...{ code: 'config', message: expect.stringContaining('the agent anna') },
    hint: expect.stringContaining('fleet.separateMirrors: true'),
  });
  const report = { callsLastMinute: 3, isDraining: true, capacity: 0, lacks: 'room', notFollowed: 2 };
  await agents.report(anna, { ...report, pollAgeMs: 1.6 });
  const { isDraining: _, capacity: __, ...shown } = report;
  const state = { name: 'anna', state: 'draining', maxJobs: 1, jobs: 0, pollAgeMs: 2 };
  expect(await agents.all()).toMatchObject([{ ...anna.about, ...shown, ...state }]);
  expect([await agents.askToDrain('bert'), await agents.askToDrain('anna')]).toEqual([false, true]);
  const isAsked = () => fleet.query(`SELECT drain_asked AS asked FROM jobtail.agents WHERE name = 'anna'`);
  expect(await isAsked()).toEqual([{ asked: true }]);
  // A backup of the moment when it joined is restored.
  const { isRestored } = await agents.report(anna, { ...report, pollAgeMs: -5 });
  expect(await agents.all(), 'after a clock was set back').toMatchObject([{ pollAgeMs: 0 }]);
  await fleet.query('UPDATE jobtail.agents SET seen_at = $1', [joinedAt]);
  const restored = await agents.report(anna, { ...report, pollAgeMs: null });
  expect([isRestored, restored.isRestored]).toEqual([false, true]);
  await agents.leave(anna);
  expect(await agents.join(anna)).toBe(true);
  expect(await isAsked()).toEqual([{ asked: false }]);
});

fleetTest('an answer that cannot be written fails the transaction around it', async (fleet) => {
  const { commands } = await fleet.join('command');
  const away = new Error('the database is away');
  const sql = { query: () => Promise.reject(away) };
  await expect(commands.settle(sql, [{ commandId: '1', answer: null }])).rejects.toBe(away);
});
