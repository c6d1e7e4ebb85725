/** One live file whose raw bytes the service fails to send keeps nothing else of its job from its end. */
import { expect, it } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { keyText } from '../../../src/job.ts';
import { unprovenIn } from '../../../src/proven.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { JOB, STDOUT, TASK } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { jobOf, ModelJobService, ModelRemote, tasksOf } from '../../support/model-remote.ts';

const RESULT = '/9001/out.dat';

class OneFails extends ModelRemote {
  result = Buffer.from('first\n');
  failure = new JobtailError('http-status', 'the service answers with status 500');

  override async listChangedFiles(...call: Parameters<ModelRemote['listChangedFiles']>): Promise<readonly string[]> {
    return [...(await super.listChangedFiles(...call)), RESULT];
  }

  override async downloadFile(...call: Parameters<ModelRemote['downloadFile']>): Promise<number> {
    const [, name, sink] = call;
    if (name.endsWith('stdout.txt')) throw this.failure;
    if (name !== RESULT) return await super.downloadFile(...call);
    await sink(this.result);
    return this.result.length;
  }
}

it.each(['fault', 'timeout'] as const)('a live file that fails with %s', async (code) => {
  const clock = new HeldClock();
  const service = new ModelJobService();
  const remote = new OneFails();
  remote.failure = new JobtailError(code, 'it fails');
  service.set(jobOf(JOB, 'Running', { tasks: tasksOf(TASK) }));
  remote.files.set(keyText(STDOUT), Buffer.from('a line\n'));
  remote.files.set(keyText({ ...STDOUT, file: 'stderr' }), Buffer.from('another\n'));
  const { store, watch } = await startAgent(remote, {
    ...{ jobService: service, clock, sections: 'poll: {maxIntervalSeconds: 60}\n' },
  });
  watch();
  // Unchanged for hours: its interval is an hour.
  await clock.passUntil('a long interval', () => store.results.get(JOB, RESULT)?.intervalMs === 3_600_000, 36_000_000);
  remote.result = Buffer.from('the last state\n');
  service.set(jobOf(JOB, 'Finished', { tasks: tasksOf(TASK) }));
  await clock.passUntil('its end', () => store.jobs.get(JOB)?.state === 'settled', 20 * 60_000);
  expect(store.results.get(JOB, RESULT)).toMatchObject({ bytes: 15 });
  expect(unprovenIn(store, JOB)).toEqual([
    ...(code === 'timeout' ? ['no last pass: it fails'] : []),
    'task 9001 stdout: it fails',
    '1 result: not fetched, or refused',
  ]);
  expect(store.liveFiles.get(JOB, { ...STDOUT, file: 'stderr' })).toMatchObject({ verified: 8 });
});
