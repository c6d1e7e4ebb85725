/** A timer that is not of the injected clock ends a simulation. */
import timers from 'node:timers';
import promises from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { inWorld } from './simulated-world.ts';
import { World } from './world.ts';

const TIMERS: Readonly<Record<string, () => unknown>> = {
  setTimeout: () => setTimeout(() => {}, 1),
  setInterval: () => setInterval(() => {}, 1),
  'setTimeout of node:timers': () => timers.setTimeout(() => {}, 1),
  'setTimeout of node:timers/promises': () => promises.setTimeout(1),
  'a promised setTimeout': () => promisify(setTimeout)(1),
  'AbortSignal.timeout': () => AbortSignal.timeout(1),
};

test.each(Object.entries(TIMERS))('ends with %s, which is not of the injected clock', (_, begin) =>
  inWorld(World.make(1), async (world) => {
    expect(begin).toThrow('not of the injected clock');
    // What caught the error hides nothing.
    await expect(world.pass(1)).rejects.toThrow('a timer is not of the injected clock');
  }),
);
