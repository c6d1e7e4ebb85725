/**
 * The promise of the live mirrors, held against generated histories: whatever happens to the remote files, the service,
 * the disk, the mirrors and the process, each mirror is at every moment a prefix of one generation of its remote file,
 * and in the end equal to it.
 */
import fc from 'fast-check';
import { test } from 'vitest';
import { actions, setting } from './model/actions.ts';
import { World } from './model/world.ts';

const RUNS = Number(process.env['JOBTAIL_MODEL_RUNS'] ?? 80);
const SEED = Number(process.env['JOBTAIL_MODEL_SEED'] ?? Date.now() % 2 ** 31);
/** The path that a failure names, to see it again; with the seed that stands beside it. */
const PATH = process.env['JOBTAIL_MODEL_PATH'];
/** Histories that run at a time: most of each is waiting for files. */
const LANES = 4;

test(`${RUNS} histories from seed ${SEED}`, { timeout: 120_000 + RUNS * 1_000 }, async () => {
  process.stdout.write(`${RUNS} histories from seed ${SEED}\n`);
  const lanes = Array.from({ length: PATH === undefined ? LANES : 1 }, (_, lane) => runLane(SEED + lane));
  for (const ended of await Promise.allSettled(lanes)) if (ended.status === 'rejected') throw ended.reason;
});

async function runLane(seed: number): Promise<void> {
  const histories = fc.asyncProperty(setting, actions, async (how, what) => {
    const world = new World(how);
    try {
      for (const action of what) {
        await world.act(action);
        world.check();
      }
      await world.checkEnd();
    } finally {
      world.end();
    }
  });
  const endOnFailure = process.env['JOBTAIL_MODEL_SHRINK'] === '0';
  const path = PATH === undefined ? {} : { path: PATH };
  await fc.assert(histories, { seed, numRuns: Math.ceil(RUNS / LANES), endOnFailure, ...path });
}
