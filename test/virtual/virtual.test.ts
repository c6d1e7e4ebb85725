/**
 * The whole agent in simulated time: jobs, commands and faults by chance. At every moment the invariants hold, and what
 * is healed becomes complete. `JOBTAIL_VIRTUAL_SEED` runs one seed again.
 */
import timers from 'node:timers';
import promises from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { runFor } from './many.ts';
import { run } from './run.ts';
import { World } from './world.ts';

const SEED = process.env['JOBTAIL_VIRTUAL_SEED'];
const SECONDS = Number(process.env['JOBTAIL_VIRTUAL_SECONDS'] ?? 1);

test('the agent holds its promises, whatever happens', { timeout: 600_000 + SECONDS * 2_000 }, async () => {
  if (SEED === undefined) await runFor(SECONDS);
  else await run(Number(SEED));
});

test('a simulation is the same with the same seed', async () => {
  const first = await run(4, 5);
  expect(first.calls).toBeGreaterThan(0);
  expect(await run(4, 5)).toEqual(first);
  expect((await run(6, 5)).digest).not.toBe(first.digest);
});

const TIMERS: Readonly<Record<string, () => unknown>> = {
  setTimeout: () => setTimeout(() => {}, 1),
  setInterval: () => setInterval(() => {}, 1),
  'setTimeout of node:timers': () => timers.setTimeout(() => {}, 1),
  'setTimeout of node:timers/promises': () => promises.setTimeout(1),
  'a promised setTimeout': () => promisify(setTimeout)(1),
  'AbortSignal.timeout': () => AbortSignal.timeout(1),
};

test.each(Object.entries(TIMERS))('ends with %s, which is not of the injected clock', async (_, begin) => {
  const world = await World.make(1);
  try {
    expect(begin).toThrow('not of the injected clock');
    // What caught the error hides nothing.
    await expect(world.pass(1)).rejects.toThrow('a timer is not of the injected clock');
  } finally {
    world.end();
  }
});
