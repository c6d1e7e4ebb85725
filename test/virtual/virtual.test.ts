/**
 * The whole agent in simulated time: jobs, commands and faults by chance. At every moment the invariants hold, and what
 * is healed becomes complete. `JOBTAIL_VIRTUAL_SEED` runs one seed again.
 */
import { expect, test } from 'vitest';
import { run, runFor } from './run.ts';

const SEED = process.env['JOBTAIL_VIRTUAL_SEED'];
const SECONDS = Number(process.env['JOBTAIL_VIRTUAL_SECONDS'] ?? 6);

test('holds its promises, whatever happens', { timeout: 120_000 + SECONDS * 2_000 }, async () => {
  if (SEED === undefined) await runFor(SECONDS);
  else await run(Number(SEED));
});

test('is the same with the same seed', { timeout: 120_000 }, async () => {
  const first = await run(7, 20);
  expect(first.calls).toBeGreaterThan(0);
  expect(await run(7, 20)).toEqual(first);
  expect((await run(8, 20)).digest).not.toBe(first.digest);
});
