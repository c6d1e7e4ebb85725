/** A job without a process whose stdout is hard to prove, and what is shown of it. */
import fs from 'node:fs';
import type { JobDescription } from '../../simulator/control.ts';
import { submitQuietJob } from './e2e-job.ts';
import { Place } from './e2e-place.ts';
import type { Program } from './e2e-program.ts';

/** Not UTF-8 in the middle, and cut inside a character at its end. */
export const CONTENT = Buffer.concat([
  Buffer.from('Příliš '),
  Buffer.from([0xff, 0xc3, 0]),
  Buffer.from('kůň\n'),
  Buffer.from([0xc5]),
]);

/** Such a job in a configuration; it is followed if it is to be settled by itself. */
export async function quietJob(context: Parameters<typeof Place.make>[0], settleAfterMinutes?: number) {
  const place = Place.make(context);
  const { sandbox, job, task } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, CONTENT);
  const watch = [{ job: job.jobId, tasks: [task.taskId], settleAfterMinutes }];
  // Downloads of results would be taken for those of the proof.
  place.configure(sandbox, { watch: settleAfterMinutes === undefined ? [] : watch, results: { enabled: false } });
  return { place, sandbox, job, stdout: task.files.stdout, taskId: task.taskId };
}

/** The line of the log about the last pass over a job. */
export const passOver = (agent: Program, { jobId }: JobDescription) => agent.logs('complete pass ended', { jobId });

/** What `status --json` has of a job. */
export async function shownOf(place: Place, { jobId }: JobDescription) {
  return (await place.status(jobId)).jobs[0];
}
