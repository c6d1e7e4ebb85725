/**
 * The promise of the live mirrors, held against generated histories: whatever happens to the remote files, the service,
 * the disk, the mirrors and the process, each mirror is at every moment a prefix of one generation of its remote file,
 * and in the end equal to it.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Action, actions, setting } from './model/actions.ts';
import { World } from './model/world.ts';

const RUNS = Number(process.env['JOBTAIL_MODEL_RUNS'] ?? 2_000);
const SEED = Number(process.env['JOBTAIL_MODEL_SEED'] ?? Date.now() % 2 ** 31);

test(`${RUNS} histories, seed ${SEED}`, { timeout: 60_000 + RUNS * 100 }, async () => {
  let histories = 0;
  await fc.assert(
    fc.asyncProperty(setting, actions, async (how, what) => {
      const world = new World(how);
      try {
        for (const action of what) await step(world, action);
        await world.checkEnd();
      } finally {
        await world.end();
      }
      histories++;
    }),
    { numRuns: RUNS, seed: SEED, endOnFailure: process.env['JOBTAIL_MODEL_SHRINK'] === '0' },
  );
  expect(histories).toBeGreaterThanOrEqual(RUNS);
});

async function step(world: World, action: Action): Promise<void> {
  await world.act(action);
  world.check();
}
