/** Planted mistakes, each found by the first runs. Without one, the same runs pass. */
import { expect, test } from 'vitest';
import { runApart } from '../many.ts';
import { PLANTED, type Planted } from '../planted.ts';

/** Less than a minute of simulation on a machine at rest. */
const SEEDS = 16;
const HOUR = 3_600;

/** What the first runs find. */
async function findings(planted?: Planted): Promise<string> {
  const env = { ...process.env, ...(planted === undefined ? {} : { JOBTAIL_PLANTED: JSON.stringify(planted) }) };
  const of = planted?.isOfFleet === true ? 'fleet' : 'single';
  const { failure = '' } = await runApart({ of, first: 1, step: 1, runs: SEEDS, seconds: HOUR }, { env });
  return failure;
}

const LIMIT = { timeout: 1_800_000 };

test('without a mistake, the runs pass', LIMIT, async () => {
  expect(await findings()).toBe('');
});

test.each(PLANTED)('$name is found', LIMIT, async (planted) => {
  expect(await findings(planted)).toMatch(planted.found);
});
