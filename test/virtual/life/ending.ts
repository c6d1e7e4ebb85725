/** The end of a generated history: failures stop, or stay with their job, and everything that waits ends. */

import type { JobId } from '../../../src/job.ts';
import { phaseOf } from '../../../src/job-information.ts';
import { unprovenIn } from '../../../src/proven.ts';
import type { SimulatedJob } from '../cluster.ts';
import { becomesTrue, checkShown, lacksOfOutbox } from '../liveness.ts';
import { checkMemory } from '../safety.ts';
import { type Life, MINUTE_MS } from './world.ts';

/** A quiet minute, after a report of each half minute, and a pass. */
const CLEAN_MS = 9 * MINUTE_MS;
/** What fails delays an end by a quarter of an hour. */
const FAILING_MS = 35 * MINUTE_MS;
/** Each of sixty results hangs for its time-out, and once more. */
const HANGING_MS = 60 * MINUTE_MS;
const FLAKY_MS = 15 * MINUTE_MS;
/** After an outage, the list of jobs is requested after five minutes at the latest. */
const LISTED_MS = 6 * MINUTE_MS;
const STEP_MS = 20_000;
/** A key whose revocation failed is tried again after five minutes at the latest. */
const REVOKED_MS = 6 * MINUTE_MS;
const REVOKED_AGAIN_MS = REVOKED_MS;

export async function endOf(world: Life): Promise<void> {
  const { promises } = world;
  world.note('outages are over');
  world.heal();
  if (!world.isUp) world.start();
  if (world.store.watchMine.inForce() !== undefined) {
    // A kill that was to come may come in this time, and end the work of it.
    for (let kills = -1; kills !== promises.kills; ) {
      kills = promises.kills;
      await world.pass(LISTED_MS);
    }
    requirePlaces(world);
  }
  for (const job of world.jobs) {
    if (job.isOver || job.isIdle) continue;
    if (job.state !== 'Running') job.to('Running', world.time.wallMs);
    job.end('Finished', world.time.wallMs);
  }
  world.note('all jobs end');
  const isHanging = (id: JobId) =>
    world.service.faultsOf(id).some(({ of, code }) => of === 'result' && code === 'silent');
  const boundOf = ({ id }: SimulatedJob) =>
    isHanging(id) ? HANGING_MS : world.service.failed.has(id) ? FAILING_MS : CLEAN_MS;
  await untilNothing(world, (passedMs) => lacking(world, boundOf, passedMs));
  await world.pass(REVOKED_MS);
  requireRevoked(world);
  world.note('nothing fails any more');
  world.lasting = [];
  world.fail();
  for (const job of world.jobs) for (const [, , file] of job.liveFiles()) file.shownBytes = undefined;
  await untilNothing(world, (passedMs) => lacking(world, () => FAILING_MS, passedMs));
  await syncUnproven(world);
  if (world.service.keys.size > 0) await world.pass(REVOKED_AGAIN_MS);
  requireRevoked(world);
  await becomesTrue(world, () => lacksOfOutbox(world));
  promises.checkEvents();
  checkMemory(world, world.lengths());
  world.disk.aside(() => checkShown(world.agent));
  world.check();
  if (world.setting.retention) await checkRetention(world);
  await world.stop();
}

/** Lets time pass until nothing is missing; `missing` throws what is late. */
async function untilNothing(world: Life, missing: (passedMs: number) => number): Promise<void> {
  const begunAt = world.time.passedMs;
  for (let count = 0; ; count += 1) {
    if (missing(world.time.passedMs - begunAt) === 0) return;
    // A minute in ten, if the service is flaky.
    const isOut = world.setting.isFlaky && world.lasting.length > 0 && count % 30 < 3;
    world.fail(...(isOut ? [{ of: 'all', job: null, code: 'unreachable' } as const] : []));
    await world.pass(STEP_MS);
  }
}

/** How many jobs and requests are not done. @throws Error if one is late */
function lacking(world: Life, boundOf: (job: SimulatedJob) => number, passedMs: number): number {
  const { store, promises, setting, service } = world;
  const flakyMs = setting.isFlaky ? FLAKY_MS : 0;
  const late = (job: SimulatedJob, what: string) => {
    // The rule takes one after the other; the process that follows it may have been killed.
    if (Math.min(passedMs, promises.followedMs(job.id)) <= boundOf(job) + flakyMs) return;
    const error = store.jobs.get(job.id)?.error;
    throw new Error(
      `after ${passedMs / MINUTE_MS} minutes: job ${job.id} ${what}${error ? ` (${error.message})` : ''}`,
    );
  };
  let count = 0;
  for (const job of world.jobs) {
    const row = store.jobs.get(job.id);
    if (row === undefined || row.state === 'settled' || row.state === 'ended' || !job.isOver) continue;
    const faults = service.faultsOf(job.id);
    const isReported = job.isListed || faults.every(({ of }) => of !== 'report');
    // A pass of `unwatch` that fails is repeated until it succeeds.
    if (row.state === 'ending' && faults.length > 0) continue;
    const state = store.jobInformation.get(job.id)?.information.state ?? null;
    // That the service hangs on all live files of a job, or on its listing, may be an outage, which is waited for.
    const hangsOn = job.namesTasks ? ['parts'] : ['parts', 'listing'];
    const isHanging = faults.some(({ of, code }) => hangsOn.includes(of ?? 'all') && code === 'silent');
    if (!isReported || isHanging) continue;
    count += 1;
    late(job, phaseOf(state) === 'over' ? `is ${state}, and ${row.state}` : `is over, and reported as ${state}`);
  }
  for (const { jobId, kind } of promises.unanswered()) {
    const job = service.jobs.get(jobId);
    if (job === undefined || service.faultsOf(jobId).length > 0) continue;
    count += 1;
    late(job, `waits for the answer to ${kind}`);
  }
  return count;
}

/** The rule follows running jobs while there are places; jobs that were never submitted hold none. */
function requirePlaces({ store, jobs, service }: Life): void {
  const rule = store.watchMine.inForce();
  if (rule === undefined) return;
  const rows = store.jobs
    .all()
    .filter(({ source, state }) => source === 'mine' && (state === 'watched' || state === 'ending'));
  const held = rows.filter(({ jobId }) => service.jobs.get(jobId)?.isIdle === false).length;
  if (held >= rule.maxJobs) return;
  const known = store.jobs.known();
  const left = jobs.find(({ id, isListed, state }) => isListed && state === 'Running' && !known.has(id));
  if (left !== undefined)
    throw new Error(`job ${left.id} runs and is not followed: ${held} of ${rule.maxJobs} places are held`);
}

/** A key of a job that is not followed ends, whatever fails for others. */
function requireRevoked({ store, service, promises }: Life): void {
  const open = new Set(store.leases.allOpen().map(({ jobId }) => jobId));
  for (const { jobId } of service.keys) {
    const state = store.jobs.get(jobId)?.state;
    // A kill between the answer and its record leaves a key that no process can name.
    if (promises.kills > 0 && !open.has(jobId)) continue;
    const isFailing = service.faultsOf(jobId).some(({ of }) => of === 'revoke');
    if (state !== 'watched' && state !== 'ending' && !isFailing)
      throw new Error(`job ${jobId} is ${state ?? 'removed'}, and its key is valid`);
  }
}

/** What was not proven is proven by a sync when nothing fails. */
async function syncUnproven(world: Life): Promise<void> {
  const { promises } = world;
  const jobs = world.jobs.filter((job) => {
    const isSettled = world.store.jobs.get(job.id)?.state === 'settled';
    // What the service hangs on is requested once a day.
    const isAsked = isSettled && !job.isDeleted && !world.service.hung.has(job.id);
    return isAsked && promises.canProve(job) && unprovenIn(world.store, job.id).length > 0;
  });
  if (jobs.length === 0) return;
  world.note(`a sync of ${jobs.map(({ id }) => id).join(', ')} is requested`);
  world.command((store) => {
    for (const { id } of jobs) promises.asked(store.requests.add(id, 'sync', world.agent.clock.now()), id, 'sync');
  });
  await untilNothing(world, (passedMs) => lacking(world, () => CLEAN_MS, passedMs));
  for (const job of jobs) {
    const unproven = unprovenIn(world.store, job.id);
    if (unproven.length > 0) throw new Error(`job ${job.id} is not proven after a sync: ${unproven.join('; ')}`);
  }
}

/** Old jobs are removed one after the other, and a stop ends that. */
async function checkRetention(world: Life): Promise<void> {
  await world.pass(11 * MINUTE_MS);
  await world.stop();
  world.disk.removalMs = 5_000;
  world.start();
  await world.pass(1_000);
}
