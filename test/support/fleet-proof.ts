/** What has to hold of a fleet whatever was done to it. */
import { expect } from 'vitest';
import { until } from './e2e-until.ts';
import type { Attempt, Fleet } from './fleet.ts';
import type { WrittenFile } from './fleet-files.ts';

/** From a write to the line in the log, on a busy machine. */
const NOTICE_MS = 1_500;

/** At every moment: no mirror holds what never was in its file, no generation is made up, no job had two owners. */
export async function expectSound(fleet: Fleet, when: string): Promise<void> {
  for (const file of fleet.files) {
    // What is read while a mirror is cut may be bytes of before and after: what is wrong stays so.
    if (file.wrong() === undefined) continue;
    await until(`a mirror that is right, ${when}: ${file.wrong()}`, () => file.wrong() === undefined).catch(
      expect.fail,
    );
  }
  await expectOneOwner(fleet, when);
}

/** At the end: all of the above, every mirror is its file, and nothing is lost that was seen. */
export async function expectEqual(fleet: Fleet, files: readonly WrittenFile[] = fleet.files): Promise<void> {
  await fleet.untilEqual(files);
  expect(files.flatMap((file) => file.wrongInTheEnd() ?? [])).toEqual([]);
  await expectOneOwner(fleet, 'in the end');
}

async function expectOneOwner(fleet: Fleet, when: string): Promise<void> {
  const attempts = await fleet.attempts();
  expect(overlaps(attempts), when).toEqual([]);
  expect(
    fleet.agents.flatMap((agent) => lateGrowths(agent.name, agent.growths(), attempts)),
    when,
  ).toEqual([]);
}

/** Attempts of one job that do not follow one another. */
function overlaps(attempts: readonly Attempt[]): string[] {
  return attempts.flatMap((one, index) => {
    const next = attempts[index + 1];
    if (next === undefined || next.jobId !== one.jobId) return [];
    if (next.attempt > one.attempt && one.endedAt !== null && one.endedAt <= next.takenAt) return [];
    return [`job ${one.jobId}: ${JSON.stringify(one)} and ${JSON.stringify(next)}`];
  });
}

/** Mirrors that grew by an agent when it had no attempt of their job, as both sides tell it by clocks that agree. */
function lateGrowths(
  name: string,
  growths: readonly { readonly jobId: string; readonly at: number }[],
  attempts: readonly Attempt[],
): string[] {
  const mine = attempts.filter(({ agent }) => agent === name);
  return growths
    .filter(({ jobId, at }) => !mine.some((one) => one.jobId === jobId && isWithin(at, one)))
    .map(({ jobId, at }) => `${name}: a mirror of job ${jobId} grew at ${new Date(at).toISOString()}`);
}

const isWithin = (at: number, { takenAt, endedAt }: Attempt) =>
  at >= takenAt - NOTICE_MS && at <= (endedAt ?? Number.POSITIVE_INFINITY) + NOTICE_MS;
