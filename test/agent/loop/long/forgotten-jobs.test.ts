/** Jobs that come and go: an agent that runs for months remembers nothing of those that it was reported to leave. */
import { expect, it } from 'vitest';
import { type JobId, keyText, LIVE_FILE_NAMES } from '../../../../src/job.ts';
import { startAgent } from '../../../support/composed-agent.ts';
import { until } from '../../../support/e2e-until.ts';
import { TASK } from '../../../support/engine.ts';
import { ModelRemote } from '../../../support/model-remote.ts';
import { textsWithin } from '../../../support/texts-within.ts';

/** Of all jobs of the test, and of nothing else. */
const MARK = '77123';
const JOBS = Array.from({ length: 12 }, (_, index) => `${MARK}${index}` as JobId);

/** An agent over a service with every trouble that is remembered. */
async function startTroubledAgent() {
  const remote = new ModelRemote();
  const name = (file: (typeof LIVE_FILE_NAMES)[number]) => keyText({ taskId: TASK, file });
  remote.files.set(name('stdout'), Buffer.from('grows, and is rewritten\n'));
  remote.files.set(name('log'), Buffer.from([0x61, 0xff, 0x62]));
  remote.files.set(name('progress'), Buffer.from([0x61, 0xc5]));
  remote.poisoned.add(name('stderr'));
  remote.rawAccess = false;
  const { agent, store, warnings } = await startAgent(remote);
  const change = (each: (jobId: JobId) => void) => {
    store.transaction(() => JOBS.forEach(each));
    agent.refresh();
  };
  const watch = () => {
    const order = {
      tasks: [TASK],
      files: LIVE_FILE_NAMES,
      results: true,
      settleAfterMs: null,
      source: 'command',
    } as const;
    change((jobId) => store.jobs.watch({ ...order, jobId }, Date.now()));
  };
  const unwatch = () => change((jobId) => store.jobs.unwatch(jobId, 'ended'));
  return { agent, store, remote, warnings, watch, unwatch };
}

it('watches and unwatches many jobs, and keeps nothing of them', async () => {
  const { agent, store, remote, warnings, watch, unwatch } = await startTroubledAgent();
  const isWarnedOf = (jobId: JobId) => warnings.some((text) => text.includes(`scope="job ${jobId}`));
  const warnedOf = () => until('a warning of each', () => JOBS.every(isWarnedOf));
  watch();
  await warnedOf();
  const visited = () => store.jobs.all().every(({ polledAt }) => polledAt !== null);
  await until('runs of all', visited);
  remote.files.set(keyText({ taskId: TASK, file: 'stdout' }), Buffer.from('another one altogether, it seems\n'));
  const { calls } = remote;
  await until('more runs', () => remote.calls > calls + 3 * JOBS.length);
  expect(textsWithin(agent, MARK).length).toBeGreaterThan(JOBS.length);

  unwatch();
  expect(agent.jobs).toBe(0);
  await until('nothing left of them', () => textsWithin(agent, MARK).length === 0);

  // They fail as before, and that is said as if it were the first time.
  warnings.length = 0;
  watch();
  await warnedOf();
});
