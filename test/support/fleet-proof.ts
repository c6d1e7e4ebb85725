/** What has to hold of a fleet whatever was done to it. */
import { expect } from 'vitest';
import type { RecordedCall } from '../../src/sandbox/traffic.ts';
import { until } from './e2e-until.ts';
import type { Attempt, Fleet } from './fleet.ts';
import type { WrittenFile } from './fleet-files.ts';

/** At every moment: no mirror holds what never was in its file, no generation is made up, no job had two owners. */
export async function expectSound(fleet: Fleet, when: string): Promise<void> {
  for (const file of fleet.files) {
    // What is read while a mirror is cut may be bytes of before and after: what is wrong stays so.
    if (file.wrong() === undefined) continue;
    await until(`a mirror that is right, ${when}: ${file.wrong()}`, () => file.wrong() === undefined).catch(
      expect.fail,
    );
  }
  expect(overlaps(await fleet.attempts()), when).toEqual([]);
}

/** At the end: all of the above, every mirror is its file, and nothing is lost that was seen. */
export async function expectEqual(fleet: Fleet, files: readonly WrittenFile[] = fleet.files): Promise<void> {
  await fleet.untilEqual(files);
  expect(files.flatMap((file) => file.wrongInTheEnd() ?? [])).toEqual([]);
  expect(overlaps(await fleet.attempts())).toEqual([]);
}

/** Attempts of one job that do not follow one another. */
export function overlaps(attempts: readonly Attempt[]): string[] {
  return attempts.flatMap((one, index) => {
    const next = attempts[index + 1];
    if (next === undefined || next.jobId !== one.jobId) return [];
    if (next.attempt > one.attempt && one.endedAt !== null && one.endedAt <= next.takenAt) return [];
    return [`job ${one.jobId}: ${JSON.stringify(one)} and ${JSON.stringify(next)}`];
  });
}

/** The most calls in any time of `windowMs`, as the service counts them. */
export function mostCallsWithin(calls: readonly Pick<RecordedCall, 'atMs'>[], windowMs: number): number {
  const times = calls.map(({ atMs }) => atMs).sort((a, b) => a - b);
  let [most, first] = [0, 0];
  for (const [index, time] of times.entries()) {
    while ((times[first] ?? 0) <= time - windowMs) first++;
    most = Math.max(most, index - first + 1);
  }
  return most;
}
