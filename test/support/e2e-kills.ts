/** What the tests with kills share: how many, by which numbers, and what outlives a failure. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { TestContext } from 'vitest';
import type { Place } from './e2e-place.ts';

/** JOBTAIL_KILLS: half of them while files grow, half at steps of a new generation. */
const KILLS = Number(process.env['JOBTAIL_KILLS'] ?? (process.env['JOBTAIL_LONG'] === '1' ? 6 : 2));
/** JOBTAIL_SEED repeats a run as far as kills can be repeated. */
const SEED = Number(process.env['JOBTAIL_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
/** More kills than these take another job, so that its files stay of a size. */
const KILLS_A_JOB = 10;
const HALF = Math.ceil(KILLS / 2);

/** What one job goes through: kills, and the seed of its numbers. */
export const KILL_ROUNDS = Array.from({ length: Math.ceil(HALF / KILLS_A_JOB) }, (_, index) => ({
  seed: SEED + index,
  kills: Math.min(KILLS_A_JOB, HALF - index * KILLS_A_JOB),
}));

/** The mirrors, the files of the cluster, the state and each agent's log outlive a test that failed. */
export function keepEvidenceIfFailed(place: Place, { task, onTestFinished }: TestContext, seed: number): void {
  // It runs before the place is cleared, which was asked for earlier; what is said of failed tests comes later.
  onTestFinished(() => {
    if (task.result?.state === 'fail') keepEvidence(place, seed);
  });
}

function keepEvidence(place: Place, seed: number): void {
  const kept = fs.mkdtempSync(path.join(os.tmpdir(), `jobtail-kill-${seed}-`));
  fs.cpSync(place.directory, kept, { recursive: true });
  for (const [index, { args, stdout, stderr }] of place.programs.entries())
    fs.writeFileSync(path.join(kept, `${index}-${args[0]}.log`), `${args.join(' ')}\n${stdout}${stderr}`);
  process.stderr.write(`everything is kept in ${kept}\n`);
}

/** mulberry32: numbers from 0 up to 1. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
