/**
 * The life of jobs, held against generated histories: whatever the service reports, whatever fails, is commanded, stops
 * or is killed, no job counts as proven that is not, no event is sent twice, lost or invented, and everything that waits
 * ends, however its neighbours fail.
 */
import timers from 'node:timers';
import promises from 'node:timers/promises';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { numRuns } from '../support/property-runs.ts';
import { endOf } from './life/ending.ts';
import { lineOf, type Setting, type Step, setting, steps } from './life/steps.ts';
import { Life } from './life/world.ts';
import { inWorld } from './simulated-world.ts';
import { World } from './world.ts';

const RUNS = Number(process.env['JOBTAIL_LIFE_RUNS'] ?? numRuns(240).numRuns);
const SEED = Number(process.env['JOBTAIL_LIFE_SEED'] ?? Date.now() % 2 ** 31);
/** The path that a failure names, to see it again. */
const PATH = process.env['JOBTAIL_LIFE_PATH'];
const IS_SHRUNK = process.env['JOBTAIL_LIFE_SHRINK'] !== '0';

test(`${RUNS} lives of jobs from seed ${SEED}`, { timeout: 120_000 + RUNS * 10_000 }, async () => {
  const begunAt = Date.now();
  const found = await fc.check(
    fc.asyncProperty(setting, steps, async (how, what) => void (await runHistory(how, what))),
    {
      ...{ seed: SEED, numRuns: RUNS, endOnFailure: !IS_SHRUNK },
      ...(PATH !== undefined && { path: PATH }),
    },
  );
  const tookMs = (Date.now() - begunAt) / found.numRuns;
  process.stdout.write(`${found.numRuns} lives of jobs from seed ${SEED}: ${tookMs.toFixed(0)} ms each\n`);
  const { counterexample, counterexamplePath, errorInstance } = found;
  if (counterexample === null) return;
  const [how, what] = counterexample;
  const again = `JOBTAIL_LIFE_SEED=${SEED} JOBTAIL_LIFE_PATH=${counterexamplePath} npx vitest run test/virtual/life.test.ts`;
  throw new Error(`${(errorInstance as Error).message}\n\n${shown(how, what)}\n\nagain: ${again}`);
});

test('a life is the same with the same seed', async () => {
  const [example] = fc.sample(fc.tuple(setting, steps), { seed: 4, numRuns: 1 });
  const [how, what] = example as [Setting, readonly Step[]];
  const first = await runHistory(how, what);
  expect(first.calls).toBeGreaterThan(0);
  expect(await runHistory(how, what)).toEqual(first);
  expect(await runHistory({ ...how, chance: how.chance + 1 }, what)).not.toEqual(first);
});

const TIMERS: Readonly<Record<string, () => unknown>> = {
  setTimeout: () => setTimeout(() => {}, 1),
  setInterval: () => setInterval(() => {}, 1),
  'setTimeout of node:timers': () => timers.setTimeout(() => {}, 1),
  'setTimeout of node:timers/promises': () => promises.setTimeout(1),
  'a promised setTimeout': () => promisify(setTimeout)(1),
  'AbortSignal.timeout': () => AbortSignal.timeout(1),
};

test('a life ends with a timer that is not of the injected clock', () =>
  inWorld(World.make(1), async (world) => {
    for (const [name, begin] of Object.entries(TIMERS)) expect(begin, name).toThrow('not of the injected clock');
    // What caught the errors hides none.
    expect(world.machine.strayTimers).toHaveLength(Object.keys(TIMERS).length);
    await expect(world.pass(1)).rejects.toThrow('a timer is not of the injected clock');
  }));

const runHistory = (how: Setting, what: readonly Step[]) =>
  inWorld(Life.of(how), async (world) => {
    for (const step of what) await world.act(step);
    await endOf(world);
    return { digest: world.digest, calls: world.service.calls };
  });

function shown({ jobs, ...how }: Setting, what: readonly Step[]): string {
  const ofJobs = jobs.map((job, index) => `job ${index}: ${JSON.stringify(job)}`);
  return [JSON.stringify(how), ...ofJobs, ...what.map(lineOf)].join('\n');
}
