/** A job that is followed by its number alone: in the foreground, and after one of its tasks was named. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { placeWithJob } from '../../support/e2e-by-number.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

describe.concurrent('watch --foreground', PATIENCE, () => {
  it.for([true, false])('follows tasks as they are found (unreported: %s)', async (unreported, context) => {
    const habits = { specificationIds: 0 } as const;
    const { place, job } = await placeWithJob(context, { unreported, habits });
    for (const { files, taskId } of job.tasks) fs.writeFileSync(files.stdout, `from ${taskId}\n`);
    const watching = place.start(['watch', job.jobId, '--foreground']);
    for (const { taskId } of job.tasks)
      await until('its lines', () => watching.stdout.includes(`${taskId} stdout   | from ${taskId}\n`));
    expect(watching.stderr).toContain(unreported ? 'tasks: 2, found by probes for their files' : 'tasks: 2, reported');
    expect(watching.stderr.includes(`job ${job.jobId} is Running\n`)).toBe(!unreported);
    expect(watching.stdout, 'nothing but lines of the job').toMatch(/^(\d+ stdout {3}\| from \d+\n){2}$/);
    watching.signal('SIGINT');
    expect(await watching.ended).toMatchObject({ code: 130 });
  });
});

it.concurrent(
  'a job of which one task was named, and is no longer, has its others looked for first',
  PATIENCE,
  async (context) => {
    const { place, job, mirrors } = await placeWithJob(context);
    await place.run();
    const [task] = job.tasks;
    await place.agent('watch', job.jobId, '--task', task?.taskId ?? '');
    const watched = await place.agent('watch', job.jobId);
    expect(watched.stdout.trim().split('\n')).toEqual(mirrors());
  },
);
