/** The end of a job, once begun, survives a kill of the agent. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { passOver, quietJob, shownOf } from '../../support/e2e-quiet-job.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

describe.concurrent('a job', PATIENCE, () => {
  it('that a kill meets while it settles is settled after the next start', async (context) => {
    const { place, sandbox, job } = await quietJob(context, 0.03);
    await sandbox.fault({ kind: 'hang', operation: 'DownloadFileFromCluster' });
    const agent = await place.run();
    await until('the proof to begin', async () => ((await sandbox.faultsApplied())[0] ?? 0) > 0);
    await agent.kill();
    await sandbox.clearFaults();
    expect(await shownOf(place, job)).toMatchObject({ state: 'watched' });
    expect(await passOver(await place.run(), job)).toMatchObject({ state: 'settled', verified: 4 });
    const again = await place.agent('watch', job.jobId);
    expect(again.stderr).toContain('was settled, and is watched again until it settles anew');
  });

  it.for([
    ['unwatch', 'ended'],
    ['sync', 'watched'],
  ] as const)(
    'over which a kill ends the pass of %s has it done by the next agent',
    async ([command, state], context) => {
      const { place, sandbox, job, stdout, taskId } = await quietJob(context);
      const agent = await place.run();
      expect(await place.agent('watch', job.jobId, '--task', taskId)).toMatchObject({ code: 0 });
      await place.mirrored(job, 'stdout');
      await sandbox.fault({ kind: 'hang', operation: 'DownloadFileFromCluster' });
      const asked = place.start([command, job.jobId]);
      await until('the pass to begin', async () => ((await sandbox.faultsApplied())[0] ?? 0) > 0);
      await agent.kill();
      expect(await asked.ended).toMatchObject({ code: 8, stdout: '' });
      expect((await asked.ended).stderr).toContain('the agent stopped before the complete pass ended');
      fs.appendFileSync(stdout, 'written while no agent ran\n');
      await sandbox.clearFaults();

      const next = await place.run();
      expect(await passOver(next, job)).toMatchObject({ state, verified: 4, openEnds: [] });
      await place.mirrored(job, 'stdout');
      expect(await shownOf(place, job)).toMatchObject({ state });
      await place.verified(job.jobId);
    },
  );
});
