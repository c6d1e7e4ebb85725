/** Listed names that are no file, or may not be read, do not delay the end of their job. */
import { expect, it } from 'vitest';
import { JobtailError, type NoFile } from '../../../src/errors.ts';
import { keyText } from '../../../src/job.ts';
import { unprovenIn } from '../../../src/proven.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { JOB, STDOUT, TASK } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { jobOf, ModelJobService, ModelRemote, tasksOf } from '../../support/model-remote.ts';

class NoFilesRemote extends ModelRemote {
  readonly noFiles = new Map<string, NoFile>();

  override async listChangedFiles(...call: Parameters<ModelRemote['listChangedFiles']>): Promise<readonly string[]> {
    return [...(await super.listChangedFiles(...call)), ...this.noFiles.keys()];
  }

  override async downloadFile(...call: Parameters<ModelRemote['downloadFile']>): Promise<number> {
    const inPlace = this.noFiles.get(call[1]);
    if (inPlace === undefined) return await super.downloadFile(...call);
    throw new JobtailError('fault', 'the service answered DownloadFileFromCluster with status 400', { inPlace });
  }
}

async function endOf(noFiles: Readonly<Record<string, NoFile>>) {
  const clock = new HeldClock();
  const service = new ModelJobService();
  const remote = new NoFilesRemote();
  for (const [name, inPlace] of Object.entries(noFiles)) remote.noFiles.set(name, inPlace);
  service.set(jobOf(JOB, 'Finished', { tasks: tasksOf(TASK) }));
  remote.files.set(keyText(STDOUT), Buffer.from('a line\n'));
  const { store, watch } = await startAgent(remote, { jobService: service, clock, sections: '', random: () => 0.5 });
  watch();
  const startedAt = clock.monotonic();
  await clock.passUntil('its end', () => store.jobs.get(JOB)?.state === 'settled', 3 * 60_000);
  const rows = [...store.results.ofJob(JOB)].map(({ name, state }) => [name, state]);
  return { tookMs: clock.monotonic() - startedAt, unproven: unprovenIn(store, JOB), rows: Object.fromEntries(rows) };
}

it('a link to a directory, and one that leads nowhere', async () => {
  const usual = await endOf({});
  const links = await endOf({ '/9001/latest': 'a directory', '/9001/dead': 'nothing' });
  expect(links.tookMs).toBeLessThanOrEqual(usual.tookMs);
  expect(links.rows).toMatchObject({ '/9001/latest': 'left-out', '/9001/dead': 'left-out' });
  expect([links.unproven, usual.unproven]).toEqual([[], []]);
});

it('a file without the right to read it, which is named', async () => {
  const usual = await endOf({});
  const unreadable = await endOf({ '/9001/secret': 'unreadable' });
  expect(unreadable.tookMs).toBeLessThanOrEqual(usual.tookMs);
  expect(unreadable.rows).toMatchObject({ '/9001/secret': 'refused' });
  expect(unreadable.unproven).toEqual(['1 result: not fetched, or refused']);
});
