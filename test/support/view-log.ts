/** A mirror of any size without the transfer of it: written as the agent would have left it. */
import fs from 'node:fs';
import { requestOf, submitQuietJob } from './e2e-job.ts';
import type { Place } from './e2e-place.ts';

export const MIB = 2 ** 20;
/** Of one line, its end included: so places are known. */
export const LINE_BYTES = 64;

/** The line of this number, from 0, without its end. */
export function lineOf(number: number): string {
  return `step ${String(number).padStart(10, '0')} residual 1.234567e-03 `.padEnd(LINE_BYTES - 1, '.');
}

/** A place whose job's stdout has so many MiB of such lines in its mirror; no agent runs. */
export async function placeWithLog(place: Place, mib: number) {
  const { sandbox, job, task, mirror } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, `${lineOf(0)}\n`);
  place.configure(sandbox, { watch: [requestOf(job)], results: { enabled: false } });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  agent.signal('SIGTERM');
  await agent.ended;
  const file = fs.openSync(mirror, 'w');
  for (let piece = 0, line = 0; piece < mib; piece++) {
    let text = '';
    for (; text.length < MIB; line++) text += `${lineOf(line)}\n`;
    fs.writeSync(file, text);
  }
  fs.closeSync(file);
  return { job, task, mirror, lines: (mib * MIB) / LINE_BYTES };
}

/** As the agent appends. */
export function appendLines(mirror: string, from: number, count: number): void {
  let text = '';
  for (let line = from; line < from + count; line++) text += `${lineOf(line)}\n`;
  fs.appendFileSync(mirror, text);
}
