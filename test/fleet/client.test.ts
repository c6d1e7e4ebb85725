/** Commands of a fleet: those that read change nothing. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { wait } from '../../src/cli/commands/wait.ts';
import { jobsOfFleet } from '../../src/cli/fleet/client.ts';
import { answerTo, drain } from '../../src/cli/fleet/commands.ts';
import { commandLog } from '../../src/cli/process.ts';
import type { FleetConfig } from '../../src/config/config.ts';
import { fleetOfView } from '../../src/daemon/fleet.ts';
import { withJobsOfFleet } from '../../src/daemon/fleet-retention.ts';
import { asJobtailError, EXIT } from '../../src/errors.ts';
import { FleetClient, readFleet } from '../../src/fleet/commands/client.ts';
import { FORMAT } from '../../src/fleet/database/tables.ts';
import { bringOwnJobs } from '../../src/fleet/joined.ts';
import { writeRows } from '../../src/fleet/rows/handover.ts';
import type { JobId } from '../../src/job.ts';
import type { WatchMineRow } from '../../src/store/rows.ts';
import { IN_MEMORY, Store } from '../../src/store/store.ts';
import { ownState } from '../cli/own-state.ts';
import { restConfig } from '../config/files.ts';
import { until } from '../support/e2e-until.ts';
import { failureOf, SILENT } from '../support/errors.ts';
import { FleetParts, fleetTest, LOCKED, memberOf, orderFor, watches } from '../support/fleet-parts.ts';
import { NEW_RESULT } from '../support/live-place.ts';
import { needs } from '../support/needs.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const PG = needs('postgres');

const SCHEMAS = `SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname LIKE 'jobtail%'`;

fleetTest(
  'tables that are missing, older, newer or too old are refused with what to do, and stay so',
  async (fleet) => {
    const look = async () => {
      const { code, message, hint } = await failureOf(FleetClient.openReadOnly(fleet.address));
      return `${code}: ${message.replace(/\(\S+\/test_\d+/, '(DB')} (${hint})`;
    };
    const lines = [await look()];
    expect(await fleet.query(SCHEMAS)).toEqual([]);
    await fleet.join('command');
    for (const version of [FORMAT - 1, FORMAT + 1, 3]) {
      await fleet.query('UPDATE jobtail.version SET version = $1', [version]);
      lines.push(await look());
      expect(await fleet.query('SELECT version FROM jobtail.version')).toEqual([{ version }]);
    }
    expect(lines).toEqual([
      'fleet: the database of the fleet (DB, schema jobtail) has no tables of a fleet yet (start an agent of this version (agent run): it makes the tables, or brings them up to date)',
      'fleet: the database of the fleet (DB, schema jobtail) has the tables of an older version (start an agent of this version (agent run): it makes the tables, or brings them up to date)',
      `config: the tables of the fleet (DB, schema jobtail) were made by a newer version of the agent (their format is ${FORMAT + 1}) (this version supports formats up to ${FORMAT}: install the newer agent here, too)`,
      'config: the tables of the fleet (DB, schema jobtail) were made by a version of the agent before 0.2.0 (their format is 3) (start an agent of version 0.2.0 once: it upgrades them; or set another fleet.schema and watch the jobs again)',
    ]);
  },
);

fleetTest('a check of the database shows its server, its tables and its agents', async (fleet) => {
  const server = { isNewEnough: true, isEncrypted: false, isHere: true, mayCreate: true };
  const checked = async () => {
    const { version, aheadMs, where, ...found } = await readFleet(fleet.address);
    expect([version, where]).toEqual([expect.stringMatching(/^\d+/), expect.stringContaining('/test_')]);
    expect(Math.abs(aheadMs)).toBeLessThan(60_000);
    return found;
  };
  expect(await checked()).toEqual({ ...server, hasTables: false, agents: 0 });
  const { agents } = await fleet.join('command');
  for (const [name, leaseMs] of Object.entries({ anna: 600_000, ben: 0 }))
    await agents.join(memberOf(name, { leaseMs }));
  expect(await checked(), 'without the one whose lease is over').toEqual({ ...server, hasTables: true, agents: 1 });
  await fleet.query('UPDATE jobtail.version SET version = version + 1');
  await expect(readFleet(fleet.address)).rejects.toMatchObject({ code: 'config' });
  const open = `SELECT 1 FROM pg_stat_activity WHERE application_name = 'jobtail check' AND datname = current_database()`;
  // Sooner than an idle one ends by itself.
  await until('the end of its connections', async () => (await fleet.query(open)).length === 0, 8_000);
});

/** The address of a fleet with a job for a role that may only read. */
async function readerOf(fleet: FleetParts, password: string) {
  await fleet.ordered('command', 1);
  const url = new URL(fleet.address.url);
  [url.username, url.password] = [url.pathname.replace('/', 'reader_of_'), password];
  await fleet.query(`CREATE ROLE ${url.username} LOGIN PASSWORD $$${password}$$`);
  await fleet.query(`GRANT USAGE ON SCHEMA jobtail TO ${url.username}`);
  await fleet.query(`GRANT SELECT ON ALL TABLES IN SCHEMA jobtail TO ${url.username}`);
  return url;
}

fleetTest('a role with SELECT alone sees agents, jobs and commands', async (fleet) => {
  const url = await readerOf(fleet, 'password');
  const client = await FleetClient.openReadOnly({ ...fleet.address, url: url.href });
  expect(await client.agents.all()).toEqual([]);
  expect((await client.owners()).map(({ jobId }) => jobId)).toEqual(['1']);
  // An order that no agent has executed is shown as its job; the rule, as long as there is one.
  const rule: WatchMineRow = { source: 'command', since: 5, maxAgeMs: 7, include: ['a*'], exclude: ['b*'], maxJobs: 9 };
  await fleet.query('INSERT INTO jobtail.rules (rule) VALUES ($1)', [JSON.stringify(rule)]);
  const shown = await client.jobs();
  expect(shown.jobs.all()).toMatchObject([{ jobId: '1', results: false, watchedAt: expect.closeTo(Date.now(), -6) }]);
  expect(shown.watchMine.inForce()).toEqual(rule);
  await fleet.query('DELETE FROM jobtail.rules');
  expect((await client.jobs({ only: orderFor(2).jobId })).jobs.all()).toEqual([]);
  expect(shown.watchMine.inForce()).toBeUndefined();
  expect((await client.jobs()).jobs.all().map(({ jobId }) => jobId)).toEqual(['1']);
  // What has not changed is not written again.
  const version = shown.version();
  expect((await client.jobs()).version()).toBe(version);
  await fleet.query(`UPDATE jobtail.orders SET answer = '{}'`);
  expect((await client.jobs()).jobs.all()).toEqual([]);
  await expect(client.command({ jobId: orderFor(1).jobId, kind: 'sync' })).rejects.toThrow(/permission denied/);
  for (const changed of [rule, undefined]) await expect(client.setRule(changed)).rejects.toThrow(/permission denied/);
  await client.close();
  expect(() => shown.jobs.all()).toThrow();
});

fleetTest('a view goes on when the password of the database has changed', async (fleet) => {
  const url = await readerOf(fleet, 'first');
  const directory = temporaryDirectory(undefined, fleet.test);
  const urlFile = path.join(directory, 'url');
  fs.writeFileSync(urlFile, url.href, { mode: 0o600 });
  const view = await fleetOfView(
    { ...fleet.settings, url: null, urlFile },
    {
      ...{ listen: { host: '127.0.0.1', port: 0 }, tokenFile: null, publicUrl: null, program: '0', agentPid: null },
      ...{ mirrorDirectory: directory, stateDirectory: directory, errorPatterns: null },
      service: { address: '', protocol: 'rest', hasJobService: true, concurrency: 1, requestsPerMinute: null },
    },
  );
  const { store } = await view.read([]);
  await fleet.query(`ALTER ROLE ${url.username} PASSWORD $$second$$`);
  await fleet.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${url.username}'`);
  await until('the old password to be refused', () =>
    view.read([]).then(
      () => false,
      (error: Error) => /password authentication failed/.test(error.message),
    ),
  );
  url.password = 'second';
  fs.writeFileSync(urlFile, url.href);
  const read = await view.read([]);
  expect(read.store).toBe(store);
  expect(store.jobs.all().map(({ jobId }) => jobId)).toEqual(['1']);
  // Mirrors of another disk cannot be read here, unless they are of this agent.
  for (const [owner, isElsewhere] of [['bert', true] as const, ['anna', false] as const]) {
    await fleet.query(`UPDATE jobtail.jobs SET owner = '${owner}', waiting_since = NULL, mirror = 'other'`);
    expect([...(await view.read([])).places]).toEqual([['1', { owner, isElsewhere }]]);
  }
  fs.writeFileSync(path.join(directory, '.jobtail-mirror'), 'other');
  await fleet.query(`UPDATE jobtail.jobs SET owner = 'bert'`);
  expect([...(await view.read([])).places]).toEqual([['1', { owner: 'bert', isElsewhere: false }]]);
  const connections = () => fleet.query(`SELECT 1 FROM pg_stat_activity WHERE usename = '${url.username}'`);
  expect(await connections()).toHaveLength(1);
  await view.close();
  expect(() => store.jobs.all()).toThrow();
  // Sooner than an idle one ends by itself.
  await until('the end of its connection', async () => (await connections()).length === 0, 8_000);
});

it('status --all shows unwatched jobs, too', PG, async () => {
  const fleet = await FleetParts.make();
  const { config, store } = await ownState();
  const [watched, ended] = [orderFor(1), orderFor(2)];
  for (const order of [watched, ended]) store.jobs.watch(order, 0);
  store.jobs.setState(ended.jobId, 'ended');
  const [joined, log] = [await fleet.join('anna'), commandLog()];
  const info = vi.spyOn(log, 'info').mockReturnValue();
  for (let start = 0; start < 2; start++) await bringOwnJobs(store, '', joined, log);
  expect(info.mock.calls, 'the second start brings none').toEqual([[{ jobs: 2 }, 'jobs brought into the fleet']]);
  const jobs = jobsOfFleet({ ...config, fleet: fleet.settings });
  const idsIn = async (only: 'all' | undefined) => (await jobs.report(only)).jobs.map(({ jobId }) => jobId);
  expect(await idsIn(undefined)).toEqual([watched.jobId]);
  expect(await idsIn('all')).toEqual([watched.jobId, ended.jobId]);
  await jobs.close();
});

it('wait goes on while no agent of its fleet runs', PG, async () => {
  const fleet = await FleetParts.make();
  await fleet.ordered('command', 1);
  const urlFile = path.join(temporaryDirectory(), 'url');
  fs.writeFileSync(urlFile, fleet.address.url, { mode: 0o600 });
  const { file } = await restConfig({ fleet: { urlFile, name: 'anna' } });
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  await wait([orderFor(1).jobId], { config: file, timeout: 1 });
  expect([process.exitCode, ...written.mock.calls.flat()]).toEqual([
    EXIT.timeIsUp,
    'waiting, for two minutes at most: no agent is running\n',
    'job 1 is not reported yet, and the time is up\n',
  ]);
  written.mockRestore();
  process.exitCode = undefined;
});

it('run --drain ends when the agent handed its jobs over and ended, restarts, or ends with jobs', PG, async () => {
  const fleet = await FleetParts.make();
  const { agents, claims } = await fleet.ordered('anna', 1, 2);
  const { config } = await restConfig();
  const ofFleet = { ...config, fleet: fleet.settings };
  const member = memberOf('anna');
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const endOf = async (happens: () => Promise<unknown>) => {
    await agents.join(member);
    const drained = drain(ofFleet).then(() => write.mock.lastCall?.[0], asJobtailError);
    await until(
      'the request',
      async () => (await fleet.query('SELECT FROM jobtail.agents WHERE drain_asked')).length > 0,
    );
    await happens();
    return await drained;
  };
  await claims.take(2);
  expect(await endOf(() => agents.join(member))).toMatchObject({
    message: 'the agent anna restarted, and does not drain',
    hint: 'run agent run --drain again',
  });
  expect(await endOf(() => agents.leave(member))).toMatchObject({
    message: 'anna ended, and did not hand off 2 jobs',
    hint: 'other agents acquire them when its lease expires: agent status shows their owners',
  });
  await fleet.query('UPDATE jobtail.jobs SET owner = NULL');
  expect(await endOf(() => agents.leave(member))).toBe('anna has handed its jobs over and ended\n');
  expect(await drain(ofFleet).then(() => write.mock.lastCall?.[0])).toBe('no agent called anna is running\n');
});

fleetTest(
  'a command whose connection breaks says that it is stored, and one that the database lost is to be run again',
  async (fleet) => {
    const relay = await fleet.relay();
    const { agents } = await fleet.join('ben');
    await agents.join(memberOf('anna'));
    const client = await FleetClient.open(fleet.addressAt(relay.port));
    const commandId = await client.command({ jobId: orderFor(1).jobId, kind: 'sync' });
    const named = `SELECT 1 FROM pg_stat_activity WHERE application_name = 'jobtail command' AND datname = current_database()`;
    expect(await fleet.query(named), 'an operator sees whose connection it is').not.toEqual([]);
    const { signal } = new AbortController();
    const message = 'the fleet lost the command: a backup of its database was restored, or the job was removed';
    await expect(answerTo('0', client, signal), 'of a backup').rejects.toMatchObject({ code: 'fleet', message });
    const waiting = answerTo(commandId, client, signal);
    relay.cut();
    const hint = 'wait: the command is stored, and an agent executes it';
    await expect(waiting).rejects.toMatchObject({ code: 'fleet', hint });
    await client.close();
  },
);

fleetTest('a command waits for seconds for a silent server', async (fleet) => {
  const relay = await fleet.relay();
  relay.silence();
  const openedAt = performance.now();
  await expect(FleetClient.open(fleet.addressAt(relay.port))).rejects.toMatchObject({ code: 'fleet' });
  // The server ends a connection without a sign-in only after a minute.
  expect(performance.now() - openedAt).toBeLessThan(30_000);
});

fleetTest('a poll that an owner did not write is shown by the lag of the owner', async (fleet) => {
  const { database } = await fleet.ordered('command', 1, 2);
  const anna = await fleet.following(2, 'anna', { pollAgeMs: () => 7_000 });
  const client = await fleet.client();
  const polled = async () => {
    const { jobs } = await client.jobs();
    return ['1', '2'].map((jobId) => jobs.get(jobId as JobId)?.polledAt ?? 0);
  };
  await until('a heartbeat', async () => {
    const found = await polled();
    return found.every((at) => Date.now() - at < 60_000);
  });
  for (const at of await polled()) expect(Date.now() - at).toBeGreaterThan(6_500);
  // The lag is not that of the last pass of an unwatched job, which polls no more.
  await database.query(`UPDATE {s}.jobs SET state = 'ending' WHERE job_id = '1'`);
  expect((await polled()).map((at) => at > 0)).toEqual([false, true]);
  // Of an agent that is gone, the last known poll is shown.
  await anna.member.stop();
  await database.query(`UPDATE {s}.agents SET is_ended = true`);
  expect(await polled()).toEqual([0, 0]);
});

fleetTest('results that are not here are counted once in a look at one job', async (fleet) => {
  const { commands, database } = await fleet.join('command');
  const { jobId } = orderFor(1);
  const store = new Store({ directory: IN_MEMORY, service: '', owner: true, now: Date.now });
  store.transaction(() => store.jobs.watch(orderFor(1), 0));
  const row = { ...NEW_RESULT, jobId, state: 'failed', reason: 'refused', bytes: 7, fetchedAt: null } as const;
  store.results.saveAll([row, { ...row, name: '/b', state: 'synced', reason: null }]);
  await commands.give(watches(1));
  await database.transaction((sql) => writeRows(sql, [...store.portableRows.ofJob(jobId)].reverse()));
  const client = await fleet.client();
  for (const options of [{}, { only: jobId }, { only: jobId, withResults: [jobId] }])
    expect((await client.jobs(options)).results.counts(jobId)).toEqual(store.results.counts(jobId));
  await client.close();
  store.close();
});

fleetTest('a job is removed once no agent works on it, its files only where asked, and stays known', async (fleet) => {
  const directory = temporaryDirectory(undefined, fleet.test);
  const { url, schema } = fleet.address;
  const config = { mirror: { directory }, fleet: { url, schema } } as unknown as FleetConfig;
  await fleet.ordered('command', 1, 2);
  const [kept, gone] = [orderFor(1).jobId, orderFor(2).jobId];
  for (const jobId of [kept, gone]) fs.mkdirSync(path.join(directory, jobId));
  await fleet.query(`INSERT INTO jobtail.rows VALUES ('1', 'jobs', '[]', '{}'), ('2', 'jobs', '[]', '{}')`);
  const set = (columns: string) => fleet.query(`UPDATE jobtail.jobs SET ${columns}`);
  const client = await fleet.client();
  await withJobsOfFleet(config, SILENT, async (_, remove) => {
    for (const [columns, message, hint] of [
      [`state = 'watched'`, 'job 2 is followed', 'unwatch'],
      [`state = 'settled'`, 'the next agent still works on job 2', 'again in a moment'],
      [`owner = 'anna', waiting_since = NULL`, 'anna still works on job 2', 'again in a moment'],
    ] as const) {
      await set(columns);
      const refusal = { message: expect.stringContaining(message), hint: expect.stringContaining(hint) };
      for (const removal of [() => remove(gone, true), () => client.forget(gone)])
        await expect(removal()).rejects.toMatchObject(refusal);
    }
    await expect(remove('999' as JobId, true)).rejects.toThrow('999');
    await set('owner = NULL');
    expect(await remove(kept, false)).toEqual({ files: 0, bytes: 0 });
    await remove(gone, true);
    await expect(client.forget(gone)).rejects.toThrow('job 2 is not known');
  });
  expect(fs.readdirSync(directory).filter((name) => !name.startsWith('.'))).toEqual([kept]);
  expect(await client.owners()).toEqual([]);
  expect(await fleet.query('SELECT job_id FROM jobtail.rows UNION SELECT job_id FROM jobtail.orders')).toEqual([]);
  expect(await fleet.query('SELECT job_id, state FROM jobtail.jobs ORDER BY job_id')).toEqual([
    { job_id: kept, state: 'forgotten' },
    { job_id: gone, state: 'forgotten' },
  ]);
});

fleetTest('the files of a job are set aside before a command can have it followed again', async (fleet) => {
  const { commands } = await fleet.ordered('command', 1);
  const { jobId } = orderFor(1);
  await fleet.query(`UPDATE jobtail.jobs SET state = 'settled', waiting_since = NULL`);
  const client = await fleet.client();
  const said: string[] = [];
  let placed: Promise<unknown> = Promise.resolve();
  await client.whileFree(jobId, async () => {
    placed = commands.give(watches(1)).then(() => said.push('watched'));
    const waiting = () => fleet.query(LOCKED);
    await until('the command to wait', async () => (await waiting()).length > 0);
    said.push('set aside');
  });
  await placed;
  expect(said).toEqual(['set aside', 'watched']);
  await expect(client.whileFree(jobId, () => void said.push('again'))).rejects.toThrow('still works on job 1');
  expect(said).toHaveLength(2);
});
