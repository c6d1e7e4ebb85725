/** A wall clock that is set back: nothing that waits for a time waits longer. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { mirrorPath } from '../../../src/agent/live/mirror/mirror.ts';
import { keyText, LIVE_FILE_NAMES, type TaskId } from '../../../src/job.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { JOB, STDOUT, TASK } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { ModelRemote } from '../../support/model-remote.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const STDERR = { ...STDOUT, file: 'stderr' } as const;

it('a file that failed by itself is requested again within half an hour', { timeout: 120_000 }, async () => {
  const clock = new HeldClock();
  const remote = new ModelRemote();
  for (const key of [STDOUT, STDERR]) remote.files.set(keyText(key), Buffer.from(`a line of ${key.file}\n`));
  remote.poisoned.add(keyText(STDERR));
  const { agent, store, mirrorDirectory } = await startAgent(remote, {
    clock,
    sections: 'results: {enabled: false}\n',
  });
  const order = { jobId: JOB, tasks: [TASK as TaskId], files: LIVE_FILE_NAMES, results: false } as const;
  store.transaction(() => store.jobs.watch({ ...order, settleAfterMs: null, source: 'command' }, clock.now()));
  agent.refresh();
  const error = () => store.liveFiles.ofJob(JOB).find(({ file }) => file === 'stderr')?.error ?? null;
  await clock.passUntil('its failure', () => error() !== null, 5 * MINUTE_MS);
  clock.stepWall(-DAY_MS);
  remote.poisoned.clear();
  await clock.passUntil('its success', () => error() === null, 31 * MINUTE_MS);
  expect(fs.readFileSync(mirrorPath(mirrorDirectory, JOB, STDERR), 'utf8')).toBe('a line of stderr\n');
});
