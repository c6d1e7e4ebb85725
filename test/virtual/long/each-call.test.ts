/**
 * The n-th call of the file system, or transaction of the state, fails, or the process ends at it, for each n: nothing is
 * lost, and all becomes complete.
 */
import { expect, test } from 'vitest';
import { type JobId, LIVE_FILE_NAMES } from '../../../src/job.ts';
import { Chance } from '../chance.ts';
import { ended } from '../commands.ts';
import { becomesComplete, heal } from '../liveness.ts';
import { World } from '../world.ts';

const JOB = '501' as JobId;
const MINUTE_MS = 60_000;
const SETTINGS = {
  ...{ results: true, include: ['**'], exclude: [], maxFileBytes: null, mine: null, notify: true },
  ...{ minIntervalSeconds: 5, resultsIntervalSeconds: 60 },
};

/** A loss of power that takes all that was not flushed. */
const NO_LUCK = Object.assign(new Chance(1, 'power'), { is: () => false, whole: (min: number) => min });

/** What happens at a call. */
const FAULTS: Readonly<Record<string, (world: World, calls: number) => void>> = {
  EIO: ({ disk }, calls) => disk.failAfter(calls, 'EIO'),
  ENOSPC: ({ disk }, calls) => disk.failAfter(calls, 'ENOSPC'),
  'a kill': (world, calls) => world.disk.endAfter(calls, () => world.agent.kill()),
};

/** A job grows, is rewritten and has results; returns whether so many calls were made. */
async function happens(calls: number, fault: (typeof FAULTS)[string]): Promise<boolean> {
  const world = await World.make(1, SETTINGS);
  try {
    const { disk, chance, time } = world;
    const job = world.service.submit(JOB);
    job.start(time.wallMs);
    const order = { jobId: JOB, tasks: null, files: LIVE_FILE_NAMES, results: true, settleAfterMs: null } as const;
    const { store, engine } = world.agent;
    store.transaction(() => store.jobs.watch({ ...order, source: 'command' }, time.wallMs));
    engine.agent.refresh();
    const before = disk.calls;
    fault(world, calls);
    const stdout = job.tasks[0]?.files.stdout;
    stdout?.append(30);
    job.writeResult(chance, time.wallMs);
    await world.pass(MINUTE_MS);
    stdout?.rewrite(20);
    await world.pass(MINUTE_MS);
    const made = disk.calls - before;
    // With and without the power of the machine.
    if (disk.isDead) await world.kill(calls % 2 === 0);
    job.end('Finished', time.wallMs);
    await heal(world);
    await becomesComplete(world);
    // What is recorded is on the disk, whatever failed before.
    await world.kill(true);
    world.disk.powerLoss(NO_LUCK);
    world.start();
    world.check();
    await becomesComplete(world);
    await ended(world, world.agent.stop());
    return made > calls;
  } catch (error) {
    throw new Error(`call ${calls}: ${(error as Error).message}\n${world.shown()}`, { cause: error });
  } finally {
    world.end();
  }
}

test.each(Object.keys(FAULTS))('%s at each call of the file system', { timeout: 1_800_000 }, async (name) => {
  let calls = 0;
  while (await happens(calls, FAULTS[name] as (typeof FAULTS)[string])) calls += 1;
  expect(calls).toBeGreaterThan(50);
});
