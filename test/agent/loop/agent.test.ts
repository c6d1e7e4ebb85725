/** The agent as a whole: its turns, and which jobs it removes. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { Calls } from '../../../src/agent/calls.ts';
import { type JobId, LIVE_FILE_NAMES } from '../../../src/job.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { until } from '../../support/e2e-until.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { ModelRemote } from '../../support/model-remote.ts';

it('the agent reports no turn while the queue of calls makes no progress', async () => {
  const clock = new HeldClock();
  const { agent } = await startAgent(new ModelRemote(), { clock });
  let turns = 0;
  agent.onTurn(1_000, () => {
    turns += 1;
  });
  await clock.pass(10_000);
  expect(turns).toBeGreaterThan(5);
  const stalled = vi.spyOn(Calls.prototype, 'stalled', 'get').mockReturnValue(true);
  const before = turns;
  await clock.pass(60_000);
  expect(turns).toBe(before);
  stalled.mockRestore();
  await clock.pass(10_000);
  expect(turns).toBeGreaterThan(before + 5);
});

it('jobs are removed each by its own requests once its notifications exist; the next agent does what a stop interrupts', async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let caughtUp = 0;
  const catchUp = () => {
    caughtUp += 1;
    return held;
  };
  const { agent, store, said, mirrorDirectory, restart } = await startAgent(new ModelRemote(), { catchUp });
  const put = (jobId: JobId, files: number) => {
    const order = { jobId, tasks: [], files: LIVE_FILE_NAMES, results: false, settleAfterMs: null } as const;
    store.jobs.watch({ ...order, source: 'command' }, Date.now());
    store.jobs.setState(jobId, 'settled');
    fs.mkdirSync(path.join(mirrorDirectory, jobId));
    for (let file = 0; file < files; file++) fs.writeFileSync(path.join(mirrorDirectory, jobId, String(file)), '');
  };
  const [one, two] = ['501', '502'] as [JobId, JobId];
  put(one, 200);
  put(two, 1);
  const requests = [
    store.requests.add(two, 'forget', Date.now()),
    store.requests.add(one, 'forget', Date.now()),
    store.requests.add(one, 'forget-files', Date.now()),
  ];
  const answers = () => requests.map((requestId) => store.requests.get(requestId)?.answer ?? null);
  agent.refresh();
  // Also once for the changed jobs.
  await until('both to wait', () => caughtUp === 3);
  expect(store.jobs.all()).toHaveLength(2);
  const next = await restart();
  expect(answers()).toEqual([null, null, null]);
  // A stop while files are removed waits for their answer.
  const stopped = new Promise<void>((resolve) => {
    const { transaction } = store;
    store.transaction = (work) => {
      const done = transaction.call(store, work) as ReturnType<typeof work>;
      if (!fs.existsSync(path.join(mirrorDirectory, `${one}.removed`))) return done;
      if (requests.length === 3) requests.push(store.requests.add(one, 'forget', Date.now()));
      resolve(next.stop());
      return done;
    };
  });
  release();
  for (let times = 0; times < 2; times++) next.refresh();
  await stopped;
  expect(answers().slice(1), 'also of a command that came meanwhile').toEqual(
    Array.from({ length: 3 }, () => '{"files":200,"bytes":0}'),
  );
  // The other removal may not have begun when the stop came.
  (await restart()).refresh();
  await until('the other job to be removed', () => answers()[0] === '{"files":0,"bytes":0}');
  expect(said).toContain('job removed jobId=501 deleteFiles=true files=200 bytes=0');
});

it('a command that serves the state leaves the rule of the configuration', async () => {
  const { agent, store } = await startAgent(new ModelRemote(), { follows: 'asked' });
  const rule = { source: 'config', include: ['**'], exclude: [], maxAgeMs: 1, maxJobs: 1, since: 1 } as const;
  store.watchMine.save(rule);
  agent.start(null);
  expect(store.watchMine.of('config')).toEqual(rule);
});
