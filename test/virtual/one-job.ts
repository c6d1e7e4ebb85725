/** A world in which one job runs and is watched, for cases that are not by chance. */
import { type JobId, LIVE_FILE_NAMES } from '../../src/job.ts';
import type { Settings } from './agent.ts';
import { World } from './world.ts';

export const JOB = '501' as JobId;
export const MINUTE_MS = 60_000;

export async function withJob(
  work: (world: World) => Promise<void>,
  settings: Partial<Settings> = {},
  seed = 1,
): Promise<void> {
  const world = await World.make(seed, settings);
  try {
    world.service.submit(JOB).to('Running', world.time.wallMs);
    order(world, true);
    await world.pass(MINUTE_MS);
    await work(world);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${world.shown()}`, { cause: error });
  } finally {
    world.end();
  }
}

export function order({ agent, time }: World, results: boolean, jobId = JOB): void {
  const order = { jobId, tasks: null, files: LIVE_FILE_NAMES, results, settleAfterMs: null } as const;
  agent.store.transaction(() => agent.store.jobs.watch({ ...order, source: 'command' }, time.wallMs));
  agent.engine.agent.refresh();
}
