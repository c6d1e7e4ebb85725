/** Properties can be tried more often, and from a given seed, by the environment. */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { numRuns, PROPERTY_TIMES } from '../support/property-runs.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SEED = 20_260_314;

it('says how often all of them are tried', () => {
  const given = fc.check(fc.property(fc.nat(), (number) => number >= 0));
  const own = fc.check(
    fc.property(fc.nat(), (number) => number >= 0),
    numRuns(7),
  );
  expect([given.numRuns, own.numRuns]).toEqual([100, 7].map((count) => Math.ceil(count * PROPERTY_TIMES)));
  if (process.env['JOBTAIL_PROPERTY_SEED'] === `${SEED}`)
    throw new Error(`${given.numRuns} runs from seed ${given.seed}`);
});

it('is read from the environment', { timeout: 120_000 }, async () => {
  const args = [
    `${ROOT}node_modules/vitest/vitest.mjs`,
    'run',
    'test/long/property-runs.test.ts',
    '-t',
    'says how often',
  ];
  const times = { JOBTAIL_PROPERTY_TIMES: '3', JOBTAIL_PROPERTY_SEED: `${SEED}` };
  const env = { PATH: process.env['PATH'], JOBTAIL_LONG: '1', ...times };
  const failed = promisify(execFile)(process.execPath, args, { cwd: ROOT, env });
  await expect(failed).rejects.toMatchObject({ stderr: expect.stringContaining(`300 runs from seed ${SEED}`) });
});

it('is asked by each property that says how often', () => {
  const files = fs.readdirSync(`${ROOT}test`, { recursive: true, encoding: 'utf8' });
  // Its histories are counted by a variable of their own.
  const own = ['support/property-runs.ts', 'long/property-runs.test.ts', 'agent/live/model.test.ts'].map(
    path.normalize,
  );
  const deaf = files.filter(
    (file) =>
      file.endsWith('.ts') && !own.includes(file) && /\bnumRuns:/.test(fs.readFileSync(`${ROOT}test/${file}`, 'utf8')),
  );
  expect(deaf).toEqual([]);
});
