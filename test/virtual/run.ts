/** Runs of worlds by their seeds. */
import { execFileSync } from 'node:child_process';
import { Chance } from './chance.ts';
import { begin, ended, step } from './commands.ts';
import { becomesComplete, chooseBroken, heal, isQuiet, requireSaysSo, shownBy } from './liveness.ts';
import { checkMemory } from './safety.ts';
import { World } from './world.ts';

/** What happens in one run, on average. */
const STEPS = Number(process.env['JOBTAIL_VIRTUAL_STEPS'] ?? 60);

/** All is healed at any moment of a run, early or late. */
export const momentOf = (seed: number, steps: number) => new Chance(seed, 'moment').whole(1, 2 * steps);

/** One run: random events; then all is healed but one part, then that part. @throws Error with seed and commit */
export async function run(seed: number, steps = momentOf(seed, STEPS)) {
  const world = await World.make(seed);
  try {
    begin(world);
    for (let left = steps; left > 0; left -= 1) await step(world);
    const broken = chooseBroken(world);
    await heal(world, broken);
    await becomesComplete(world, broken);
    if (broken !== undefined) await requireSaysSo(world, broken);
    await heal(world);
    await becomesComplete(world);
    await isQuiet(world);
    checkMemory(world, world.lengths());
    world.disk.aside(() => shownBy(world.agent));
    await ended(world, world.agent.stop());
    return { simulatedMs: world.time.passedMs, calls: world.service.calls, digest: world.digest };
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${again(seed)}\n${world.shown()}`, { cause: error });
  } finally {
    world.end();
  }
}

/** How to see a run again. */
export function again(seed: number, file = 'virtual.test.ts'): string {
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
  const long = file.includes('/long/') ? 'JOBTAIL_LONG=1 ' : '';
  return `${long}JOBTAIL_VIRTUAL_SEED=${seed} npx vitest run test/virtual/${file} (at ${commit})`;
}
