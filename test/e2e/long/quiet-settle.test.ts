/** The end of a job, which the interface does not name: by itself after quiet time, or asked for. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { JobDescription } from '../../../simulator/control.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { openSharedStore } from '../../../src/daemon/state.ts';
import { submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import type { Program } from '../../support/e2e-program.ts';
import { until } from '../../support/e2e-until.ts';

/** Not UTF-8 in the middle, and cut inside a character at its end. */
const CONTENT = Buffer.concat([
  Buffer.from('Příliš '),
  Buffer.from([0xff, 0xc3, 0]),
  Buffer.from('kůň\n'),
  Buffer.from([0xc5]),
]);

/** Such a job in a configuration; it is followed if it is to be settled by itself. */
async function quietJob(context: Parameters<typeof Place.make>[0], settleAfterMinutes?: number) {
  const place = Place.make(context);
  const { sandbox, job, task } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, CONTENT);
  const watch = [{ job: job.jobId, tasks: [task.taskId], settleAfterMinutes }];
  // Downloads of results would be taken for those of the proof.
  place.configure(sandbox, { watch: settleAfterMinutes === undefined ? [] : watch, results: { enabled: false } });
  return { place, sandbox, job, stdout: task.files.stdout, taskId: task.taskId };
}

/** The line of the log about the last pass over a job. */
const passOver = (agent: Program, { jobId }: JobDescription) => agent.logs('complete pass ended', { jobId });

/** What `status --json` has of a job. */
async function shownOf(place: Place, { jobId }: JobDescription) {
  return (await place.status(jobId)).jobs[0];
}

describe.concurrent('a job', () => {
  it('that is quiet for long enough is settled, with proof, and said to be', async (context) => {
    const { place, job, stdout, taskId } = await quietJob(context, 0.03);
    const agent = await place.run();
    expect(await passOver(agent, job)).toMatchObject({ level: 'info', state: 'settled', verified: 4, openEnds: [] });
    expect(fs.readFileSync(place.mirrorOf(job.jobId, taskId, 'stdout')).equals(CONTENT)).toBe(true);
    expect(await shownOf(place, job)).toMatchObject({ state: 'settled', error: null });
    expect((await place.agent('status')).stdout).toContain('settled');
    expect((await place.agent('status', job.jobId)).stdout).toContain('verified');
    await agent.kill();

    // It stays so over a start, and can be followed again.
    const next = await place.run();
    await next.logs('configured job not followed', { jobId: job.jobId, state: 'settled' });
    fs.appendFileSync(stdout, 'later\n');
    const again = await place.agent('watch', job.jobId, '--task', taskId);
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('was settled, and is watched again') });
    await place.mirrored(job, 'stdout');
  });

  it.for([
    ['unwatch', 'ended', 'command that waits'],
    ['sync', 'watched', 'command that waits'],
    ['unwatch', 'ended', 'next agent'],
  ] as const)('over which a kill ends the pass of %s is %s by the %s', async ([command, state, by], context) => {
    const { place, sandbox, job, stdout, taskId } = await quietJob(context);
    const agent = await place.run();
    expect(await place.agent('watch', job.jobId, '--task', taskId)).toMatchObject({ code: 0 });
    await place.mirrored(job, 'stdout');
    await sandbox.fault({ kind: 'hang', operation: 'DownloadFileFromCluster' });
    const store = openSharedStore(await loadConfig(place.configFile));
    const asked = place.start([command, job.jobId]);
    // A poll makes such a call, too: the command must have asked the agent before that is killed.
    await until('the pass to be asked for', () => store.requests.open('pass').length > 0);
    await until('a download to hang', async () => ((await sandbox.faultsApplied())[0] ?? 0) > 0);
    store.close();
    if (by === 'next agent') await asked.kill();
    await agent.kill();
    fs.appendFileSync(stdout, 'written while no agent ran\n');
    await sandbox.clearFaults();
    if (by === 'next agent')
      expect(await passOver(await place.run(), job)).toMatchObject({ state, verified: 4, openEnds: [] });
    else {
      expect(await asked.ended).toMatchObject({ code: 0 });
      expect((await asked.ended).stdout).toContain(`job ${job.jobId}: 4 live files, 4 verified`);
    }
    expect(await shownOf(place, job)).toMatchObject({ state });
    await place.mirrored(job, 'stdout');
    await place.verified(job.jobId);
  });
});
