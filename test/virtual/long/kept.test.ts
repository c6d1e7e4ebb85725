/** What runs by chance found in the agent, as cases of their own: a seed means something else when the runs change. */
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { JobId } from '../../../src/job.ts';
import { ended, JOB, MINUTE_MS, order } from '../commands.ts';
import { inWorld } from '../simulated-world.ts';
import { World } from '../world.ts';

/** Those of the runs that found them. */
const SETTINGS = { minIntervalSeconds: 1, concurrency: 1, requestsPerMinute: null, results: false, notify: false };

/** In a world in which one job runs and is watched. */
const withJob = (work: (world: World) => Promise<void>) =>
  inWorld(World.make(1, SETTINGS), async (world) => {
    world.service.submit(JOB).to('Running', world.time.wallMs);
    order(world, true);
    await world.pass(MINUTE_MS);
    await work(world);
  });

test('no file stays open, whichever call fails while mirrors are made', async () => {
  for (let calls = 0; calls < 24; calls += 1)
    await inWorld(World.make(1, SETTINGS), async (world) => {
      world.service.submit(JOB).to('Running', world.time.wallMs);
      world.service.job(JOB).tasks[0]?.files.stdout.append(3);
      order(world, false);
      world.disk.failAfter(calls, 'ENOSPC');
      await world.pass(MINUTE_MS);
      // The world ends a run in which a stop leaves anything.
      await ended(world, world.agent.stop());
    });
});

test('a deleted job is known as deleted although its state could not be written then', () =>
  withJob(async (world) => {
    const { agent, service, disk, time } = world;
    service.job(JOB).to('Finished', time.wallMs);
    await world.pass(30_000);
    disk.full = 'all';
    service.job(JOB).to('Deleted', time.wallMs);
    await world.pass(MINUTE_MS);
    // Now and then, there is room for a moment.
    for (let times = 0; times < 20; times += 1) {
      disk.full = times % 2 === 0 ? 'no' : 'all';
      await world.pass(1_700);
    }
    disk.full = 'no';
    await world.pass(10 * MINUTE_MS);
    expect(agent.store.jobInformation.get(JOB)?.information.state).toBe('Deleted');
  }));

test('a state that cannot be read while the job service fails ends no agent', () =>
  withJob(async (world) => {
    const { agent, service, disk, time } = world;
    const operations = ['ListJobsForCurrentUser'] as const;
    service.faults.push({ code: 'unavailable', operations, share: 1, until: time.passedMs + 10 * MINUTE_MS });
    const rename = (from: string, to: string) =>
      disk.aside(() =>
        disk.database.beside(() => {
          const database = new Database(path.join(agent.store.directory, 'agent.db'));
          database.exec(`ALTER TABLE ${from} RENAME TO ${to}`);
          database.close();
        }),
      );
    rename('live_files', 'elsewhere');
    // A promise that nothing waits for ends the test, as it ends the agent.
    await time.pass(10 * MINUTE_MS);
    rename('elsewhere', 'live_files');
    await world.pass(15 * MINUTE_MS);
    expect(agent.store.jobs.get(JOB)?.error).toBeNull();
  }));

test('a stop on a slow disk opens no other mirror of a job with many', () =>
  withJob(async (world) => {
    const { agent, service, disk, time } = world;
    const job = service.submit('502' as JobId);
    for (let tasks = 0; tasks < 20; tasks += 1) job.addTask();
    job.to('Running', time.wallMs);
    disk.flushMs = 10_000;
    order(world, false, job.id);
    await world.pass(MINUTE_MS);
    const before = time.passedMs;
    await ended(world, agent.stop());
    expect(time.passedMs - before).toBeLessThan(3 * disk.flushMs);
  }));

const RESULT = '/out/result-1.dat';

test('a kill while its last pass is given up leaves no result of a settled job in flux', async () => {
  const times = { listedAt: 1, fetchedAt: 1, dueAt: 1, intervalMs: 1, hangs: 0, stamp: null, stampProven: false };
  const row = { jobId: JOB, name: RESULT, reason: null, bytes: null, sha256: null, live: null, ...times } as const;
  const settles = (killedAt: number) =>
    withJob(async (world) => {
      const { service, disk, time } = world;
      const operations = ['ListChangedFilesForJob'] as const;
      service.faults.push({ code: 'malformed', operations, share: 1, until: Number.POSITIVE_INFINITY });
      world.agent.store.results.saveAll([{ ...row, state: 'in-flux' }]);
      service.job(JOB).to('Finished', time.wallMs);
      disk.endAfter(killedAt - disk.calls, () => world.agent.kill());
      while (disk.isDead || world.agent.store.jobs.get(JOB)?.state !== 'settled') {
        await world.pass(5_000);
        if (disk.isDead) await world.kill(true).then(() => world.start());
      }
      const { jobs, results } = world.agent.store;
      expect([results.get(JOB, RESULT)?.state, jobs.get(JOB)?.error?.code]).toEqual(['failed', 'malformed']);
      calls = disk.calls;
    });
  let calls = Number.POSITIVE_INFINITY;
  await settles(calls);
  const last = calls;
  for (let before = 1; before < 12; before += 1) await settles(last - before);
});
