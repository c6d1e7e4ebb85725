/** What an owner writes of its jobs for the next one. */
import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import type { Claims } from '../../src/fleet/owners/claims.ts';
import { Handover, rowsOfJobs } from '../../src/fleet/rows/handover.ts';
import type { JobId } from '../../src/job.ts';
import { Store } from '../../src/store/store.ts';
import { type FleetParts, fleetTest, orderFor } from '../support/fleet-parts.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

/** The owner of the jobs of these numbers; `wrap` gets its fenced transactions. */
async function ownerOf(fleet: FleetParts, numbers: readonly number[], wrap = (fenced: Claims['fenced']) => fenced) {
  const { claims, database } = await fleet.ordered('anna', ...numbers);
  const jobs = await claims.take(numbers.length);
  const fenced = wrap((...given) => claims.fenced(...given));
  /** A process with such a state; the first one is told of the jobs. */
  const begin = (directory = temporaryDirectory(undefined, fleet.test), isFirst = true) => {
    const store = new Store({ directory, service: '', owner: true, now: Date.now });
    fleet.test.onTestFinished(() => store.close());
    const parts = { store, database, claims: { fenced }, mirror: 'shared', onLost: () => {} };
    const handover = new Handover(parts, store.noteChanges());
    if (isFirst) store.transaction(() => numbers.map((number) => store.jobs.watch(orderFor(number), 0)));
    const endRun = (jobId: JobId, polledAt: number, message: string | null) => {
      const error = message === null ? null : ({ code: 'fault', message, hint: null, since: 1 } as const);
      store.jobs.endRun(jobId, { polledAt, grownAt: null, refused: 0, failures: 0, error });
    };
    return { store, handover, endRun };
  };
  return { database, jobs, begin };
}

fleetTest('a row that changes back while it is written is written again', async (fleet) => {
  let meanwhile = async () => {};
  const { jobs, begin } = await ownerOf(fleet, [1], (fenced) => (held, work) => {
    return fenced(held, async (sql, owned) => {
      await work(sql, owned);
      await meanwhile();
    });
  });
  const { handover, endRun } = begin();
  const { jobId } = orderFor(1);
  await handover.write(jobs);
  endRun(jobId, 1_000, 'broken');
  const others: Promise<void>[] = [];
  meanwhile = async () => {
    meanwhile = async () => {};
    endRun(jobId, 2_000, null);
    others.push(handover.write(jobs));
  };
  await handover.write(jobs);
  await Promise.all(others);
  const [row] = await fleet.query<{ error: string | null }>(
    `SELECT row ->> 'error' AS error FROM jobtail.rows WHERE kind = 'jobs'`,
  );
  expect(row?.error).toBeNull();
});

fleetTest('an older row is not written over one that is ahead of the store', async (fleet) => {
  let committed = async () => {};
  const { jobs, begin } = await ownerOf(fleet, [1], (fenced) => async (held, work) => {
    const owned = await fenced(held, work);
    const next = committed;
    committed = async () => {};
    await next();
    return owned;
  });
  const { store, handover } = begin();
  const [[job], [file]] = [jobs, store.liveFiles.ofJob(orderFor(1).jobId)];
  if (job === undefined || file === undefined) throw new Error('job 1 has no live file');
  store.liveFiles.save({ ...file, grownAt: 1_000 });
  committed = () => handover.write(jobs);
  await handover.fence(job, { ...file, generation: 2 });
  const rows = await fleet.query(
    `SELECT (row ->> 'generation')::int AS generation FROM jobtail.rows WHERE kind = 'live_files' AND key = $1`,
    [store.liveFiles.portable(file).key],
  );
  expect(rows).toEqual([{ generation: 2 }]);
});

fleetTest('rows that a killed agent had changed are written by the next process', async (fleet) => {
  const { jobs, begin } = await ownerOf(fleet, [1]);
  const { jobId } = orderFor(1);
  const directory = temporaryDirectory(undefined, fleet.test);
  const killed = begin(directory);
  for (const job of jobs) killed.handover.noteTaken(job);
  killed.store.close();
  const { store, handover } = begin(directory, false);
  await handover.bring(jobs);
  await handover.write(jobs);
  const rows = await fleet.query<{ kind: string; key: string }>('SELECT kind, key FROM jobtail.rows');
  const own = [...store.portableRows.ofJob(jobId)].map(({ table, key }) => ({ kind: table, key }));
  expect(own.map(({ kind }) => kind)).toContain('live_files');
  expect(rows).toEqual(expect.arrayContaining(own));
});

fleetTest('all rows of a job are read, however many', async (fleet) => {
  const { database } = await fleet.ordered('anna', 1);
  const { jobId } = orderFor(1);
  await fleet.query(`INSERT INTO jobtail.rows (job_id, kind, key, row) SELECT '1', 'result_files', json_build_array(name),
    json_build_object('job_id', '1', 'name', name) FROM (SELECT 'file ' || generate_series(1, 10000) AS name) AS names`);
  const keys: string[] = [];
  for await (const page of rowsOfJobs(database, [jobId])) keys.push(...page.map(({ key }) => key));
  expect([keys.length, new Set(keys).size]).toEqual([10_000, 10_000]);
});

fleetTest('results with names of any length and character are handed over, and removed', async (fleet) => {
  const { database, jobs, begin } = await ownerOf(fleet, [1]);
  const { store, handover } = begin();
  const { jobId } = orderFor(1);
  const random = randomBytes(1_500).toString('hex');
  const names = ['/11/a', `/11/${random}`, `/12/${random}`, `/..${'"\\\n\u0001\0'.repeat(500)}${random}`, '/\0', '/0'];
  const times = { listedAt: 0, fetchedAt: 1, dueAt: 0, intervalMs: 1 };
  const row = { jobId, state: 'synced', reason: null, bytes: 1, sha256: 'x', live: null, ...times } as const;
  store.results.saveAll(names.map((name) => ({ ...row, name, stamp: null, stampProven: false, hangs: 0 })));
  const written = async () => {
    await handover.write(jobs);
    const found: string[] = [];
    for await (const page of rowsOfJobs(database, [jobId]))
      found.push(...page.flatMap(({ table, row: text }) => (table === 'result_files' ? JSON.parse(text).name : [])));
    return found.sort();
  };
  expect(await written()).toEqual([...names].sort());
  store.results.forgetAll([...store.results.ofJob(jobId)].slice(1));
  expect(await written()).toHaveLength(1);
});
