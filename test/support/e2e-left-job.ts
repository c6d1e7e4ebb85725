/** A job that was mirrored before something happened to the state of its agent, and what must hold after. */
import fs from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { mirroredJob } from './e2e-job.ts';
import type { Place } from './e2e-place.ts';
import { until } from './e2e-until.ts';

/** Not UTF-8 here and there, more than one overlap long, and whole at its end. */
export const CONTENT = Buffer.concat(
  Array.from({ length: 40 }, (_, line) =>
    Buffer.concat([Buffer.from(`${line} Příliš žluťoučký kůň`), Buffer.from([0xff, 0]), Buffer.from(' pěl ódy\n')]),
  ),
);

/** A job whose stdout was mirrored whole; its agent has ended. */
export async function leftJob(context: Parameters<typeof Place.make>[0]) {
  const { agent, ...found } = await mirroredJob(context, CONTENT);
  agent.signal('SIGTERM');
  await agent.ended;
  return { ...found, database: path.join(found.place.state, 'agent.db') };
}

/** The job grew; the mirror does too, in place, and nothing is lost, repeated, or kept as a generation. */
export async function expectItGoesOn(
  { place, job, stdout, mirror }: Omit<Awaited<ReturnType<typeof leftJob>>, 'sandbox' | 'database'>,
  inode: number,
) {
  await place.mirrored(job, 'stdout');
  expect(fs.readFileSync(mirror).equals(fs.readFileSync(stdout))).toBe(true);
  expect(fs.statSync(mirror).ino).toBe(inode);
  expect(fs.readdirSync(path.dirname(mirror)).filter((name) => name.startsWith('stdout'))).toEqual(['stdout.log']);
  const { size } = fs.statSync(stdout);
  await until('the job to be in the state, with all that is mirrored', async () =>
    (await place.status()).jobs[0]?.files.some(({ file, bytes }) => file === 'stdout' && bytes === size),
  );
  expect((await place.status()).jobs[0]?.files.map(({ generation }) => generation)).toEqual([1, 1, 1, 1]);
  await place.verified(job.jobId);
}
