/** Commands beside others: while an agent starts, before one has run, and several at the same time. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import type { JobDescription } from '../../../simulator/control.ts';
import { taskOf } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

it.concurrent(
  'commands at the same time: each is answered, and the last word about a job counts',
  PATIENCE,
  async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    const [first, second] = [await sandbox.submit({ tasks: [{}] }), await sandbox.submit({ tasks: [{}] })];
    place.configure(sandbox);
    const agent = await place.run();
    for (const { jobId, tasks } of [first, second]) {
      const watched = await place.agent('watch', jobId, ...tasks.flatMap(({ taskId }) => ['--task', taskId]));
      expect(watched).toMatchObject({ code: 0 });
    }
    // Passes that take their time, with other commands in the middle of them.
    await sandbox.fault({ kind: 'delay', ms: 1_000, operation: 'ListChangedFilesForJob' });
    const passes = [first, second].map(({ jobId }) => place.start(['sync', jobId]));
    await until('the passes to begin', async () => ((await sandbox.faultsApplied())[0] ?? 0) >= 2);
    const commands = [
      place.start(['unwatch', first.jobId]),
      place.start(['unwatch', second.jobId, '--now']),
      place.start(['sync', first.jobId]),
    ];
    for (const command of [...passes, ...commands]) expect(await command.ended).toMatchObject({ code: 0, stderr: '' });
    expect(await place.status()).toMatchObject({ agent: { running: true }, jobs: [] });
    for (const { jobId } of [first, second]) {
      expect((await place.agent('status', jobId)).stdout).toContain(`job ${jobId}: ended`);
    }

    // A job that has ended can still be asked for, one at a time, and stays ended.
    await sandbox.clearFaults();
    fs.writeFileSync(taskOf(second).files.stdout, 'later\n');
    expect(await place.agent('sync', second.jobId)).toMatchObject({ code: 0 });
    await place.mirrored(second, 'stdout');
    const passesOver = ({ jobId }: JobDescription) => agent.logged('complete pass ended', { jobId });
    expect(passesOver(second)).toHaveLength(2);
    expect((await place.status()).jobs).toEqual([]);
  },
);
