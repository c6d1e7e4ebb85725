/** Planted mistakes, each found by the first runs. Without one, the same runs pass. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { PLANTED, type Planted } from '../planted.ts';

/** Less than a minute of simulation on a machine at rest. */
const SEEDS = 16;
const HERE = path.join(import.meta.dirname, '..');
const run = promisify(execFile);

/** What the first runs find. */
async function findings(planted?: Planted): Promise<string> {
  const hook = path.join(HERE, 'planting.mjs');
  const env = { ...process.env, ...(planted === undefined ? {} : { JOBTAIL_PLANTED: JSON.stringify(planted) }) };
  const seeds = planted?.isOfFleet === true ? 'fleet/seeds.ts' : 'seeds.ts';
  const args = ['--import', hook, path.join(HERE, seeds), String(SEEDS)];
  const { stdout } = await run(process.execPath, args, { env, maxBuffer: 2 ** 26 });
  return stdout;
}

const LIMIT = { timeout: 1_800_000 };

test('without a mistake, the runs pass', LIMIT, async () => {
  expect(await findings()).toBe('');
});

test.each(PLANTED)('$name is found', LIMIT, async (planted) => {
  expect(await findings(planted)).toMatch(planted.found);
});
