/**
 * Half a minute of fleets in simulated time: real agents over one simulated PostgreSQL. `JOBTAIL_VIRTUAL_SEED` runs one
 * seed again.
 */
import { expect, test } from 'vitest';
import type { JobId } from '../../../../src/job.ts';
import { runFor } from '../../run.ts';
import { beginFleet } from '../happenings.ts';
import { isDrained, runFleet, watchAll } from '../run.ts';
import { FleetWorld } from '../world.ts';

const SEED = process.env['JOBTAIL_VIRTUAL_SEED'];
const SECONDS = Number(process.env['JOBTAIL_VIRTUAL_SECONDS'] ?? 30);

test('a fleet holds its promises, whatever happens', { timeout: 120_000 + SECONDS * 2_000 }, async () => {
  if (SEED === undefined) await runFor(SECONDS, runFleet);
  else await runFleet(Number(SEED));
});

test('a fleet does the same with the same seed', { timeout: 120_000 }, async () => {
  const first = await runFleet(2, 3);
  expect(first.statements).toBeGreaterThan(0);
  expect(await runFleet(2, 3)).toEqual(first);
});

test('a drained agent leaves no job waiting for its own share', { timeout: 120_000 }, async () => {
  const world = await FleetWorld.make(1);
  try {
    await beginFleet(world);
    for (const jobId of ['511', '512', '513'] as JobId[]) world.service.submit(jobId);
    await watchAll(world);
    await isDrained(world);
  } finally {
    world.end();
  }
});
