/**
 * Half a minute of fleets in simulated time: real agents over one simulated PostgreSQL. `JOBTAIL_VIRTUAL_SEED` runs one
 * seed again.
 */
import { expect, test } from 'vitest';
import { runFor } from '../../run.ts';
import { runFleet } from '../run.ts';

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
