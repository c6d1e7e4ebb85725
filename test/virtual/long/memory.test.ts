/** What an agent remembers is forgotten with its jobs: after a second round of them, no collection is longer. */
import { expect, test } from 'vitest';
import type { JobId } from '../../../src/job.ts';
import { writeResult, writeSome } from '../cluster-acts.ts';
import type { Lengths } from '../collections.ts';
import { MINUTE_MS, order } from '../commands.ts';
import type { Fault } from '../faults.ts';
import { inWorld } from '../simulated-world.ts';
import { World } from '../world.ts';

const JOBS = 4;
/** Statements of SQL that were used: as many as the source has. Jobs in the last list: as many as the service has. */
const OF_OTHERS = { 'Sql.#prepared': 0, 'JobStates.#seen.active': 0 };
const SETTINGS = { minIntervalSeconds: 2, maxIntervalSeconds: 60, resultsIntervalSeconds: 60, requestsPerMinute: null };

const FAULTS: readonly Pick<Fault, 'code' | 'operations' | 'file'>[] = [
  { code: 'malformed', operations: ['DownloadPartsOfJobFilesFromCluster'] },
  { code: 'silent', operations: ['DownloadPartsOfJobFilesFromCluster'] },
  { code: 'http-status', operations: ['DownloadFileFromCluster'] },
  { code: 'malformed', operations: ['ListChangedFilesForJob'] },
];

test('no collection grows with the jobs that were', () =>
  inWorld(World.make(1, SETTINGS), async (world) => {
    const lengths: Lengths[] = [];
    for (let round = 0; round < 2; round += 1) {
      const ids = Array.from({ length: JOBS }, (_, index) => `${601 + JOBS * round + index}` as JobId);
      await liveOn(world, ids);
      expect(world.lengths().get('Agent.#jobs')).toBe(JOBS);
      await endAll(world, ids);
      lengths.push(world.lengths());
    }
    const [first, second] = lengths.map((each) => Object.fromEntries(each));
    expect({ ...second, ...OF_OTHERS }).toEqual({ ...first, ...OF_OTHERS });
    expect(second?.['Agent.#jobs']).toBe(0);
  }));

/** Jobs with two tasks grow, are rewritten and have results, while each of them meets a fault. */
async function liveOn(world: World, ids: readonly JobId[]): Promise<void> {
  const { service, time, chance } = world;
  for (const [index, jobId] of ids.entries()) {
    const job = service.submit(jobId);
    job.to('Running', time.wallMs);
    job.addTask();
    order(world, true, jobId);
    const fault = FAULTS[index % FAULTS.length];
    if (fault !== undefined)
      world.later(5 * MINUTE_MS, () => void service.faults.push({ ...fault, jobId, share: 0.5, until: Infinity }));
    for (let minute = 1; minute < 15; minute += 1)
      world.later(minute * MINUTE_MS, () => {
        writeSome(job, chance);
        writeResult(job, chance, time.wallMs);
      });
  }
  await world.pass(16 * MINUTE_MS);
}

/** All of it ends; half of the jobs are settled by their state, the others are unwatched. */
async function endAll(world: World, ids: readonly JobId[]): Promise<void> {
  const { service, agent, time } = world;
  const { store, engine } = agent;
  service.faults = [];
  for (const [index, jobId] of ids.entries()) {
    if (index % 2 === 0) service.job(jobId).to('Finished', time.wallMs);
    else store.transaction(() => store.jobs.unwatch(jobId, index === 1 ? 'ended' : 'ending'));
  }
  engine.agent.refresh();
  // A result that failed, or that changes rarely, waits for an hour.
  await world.pass(130 * MINUTE_MS);
}
