/** The events that clients listen to: the same for each of them, from the moment when it began to listen. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { EventFeed } from '../../src/api/events.ts';
import { SharedState } from '../../src/daemon/state.ts';
import { JobtailError } from '../../src/errors.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { ownState } from '../cli/own-state.ts';
import { jobOf } from '../support/model-remote.ts';

async function setUp() {
  const { config, store } = await ownState();
  const clock = { ms: 0 };
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => clock.ms);
  onTestFinished(() => spy.mockRestore());
  const failures: unknown[] = [];
  const feed = new EventFeed(new SharedState(config), (error) => failures.push(error));
  const report = (jobId: string, state: string, results = false) =>
    store.transaction(() => {
      const order = { jobId: jobId as JobId, results, settleAfterMs: null, source: 'command' } as const;
      store.jobs.watch({ ...order, tasks: ['9001' as TaskId], files: ['stdout'] }, 1);
      const information = jobOf(jobId, state);
      store.jobInformation.save({ jobId: order.jobId, information, since: 1, reportedAt: 1 });
    });
  /** A client; what it reads, a second after all others. */
  const listen = () => {
    clock.ms += 1_000;
    const read = feed.reader();
    return () => {
      clock.ms += 1_000;
      return read().map(({ jobId, type }) => `${jobId} ${type}`);
    };
  };
  return { report, listen, failures, store, feed, clock };
}

it('each client gets the same events, once and in order, but none from before it began', async () => {
  const { report, listen, failures } = await setUp();
  report('501', 'Running');
  const first = listen();
  report('501', 'Finished');
  expect(first()).toEqual(['501 finished']);
  const second = listen();
  report('502', 'Running');
  expect([second(), first(), second(), first()]).toEqual([['502 started'], ['502 started'], [], []]);
  expect(failures).toEqual([]);
});

it('a settled job has all its results only where that is proven', async () => {
  const { report, listen, store } = await setUp();
  const both = ['501', '502'] as JobId[];
  for (const jobId of both) report(jobId, 'Finished', true);
  for (const row of store.liveFiles.ofJob('502' as JobId)) store.liveFiles.save({ ...row, verified: 0 });
  const client = listen();
  store.transaction(() => both.forEach((jobId) => void store.jobs.setState(jobId, 'settled')));
  expect(client()).toEqual(['502 results-complete']);
});

it('an error of the agent while events are read is reported, an absent state is not; no event is missed', async () => {
  const { report, failures, feed, clock } = await setUp();
  report('501', 'Running');
  const client = feed.reader();
  report('501', 'Finished');
  const error = new Error('broken');
  const reads = vi.spyOn(SharedState.prototype, 'store', 'get');
  onTestFinished(() => reads.mockRestore());
  const heard = [new JobtailError('store', 'there is none'), error, undefined].map((fails) => {
    clock.ms += 1_000;
    if (fails !== undefined)
      reads.mockImplementationOnce(() => {
        throw fails;
      });
    const before = client();
    clock.ms += 999;
    const events = [...before, ...client()];
    clock.ms -= 999;
    return events.map(({ type }) => type);
  });
  expect(heard).toEqual([[], [], ['finished']]);
  // Once for all that ask within a second.
  expect([failures, reads.mock.calls.length]).toEqual([[error], 3]);
});

it('a client that is more than 10,000 events behind is cut off, and others go on', async () => {
  const { report, listen, store } = await setUp();
  const [slow, slower] = [listen(), listen()];
  store.transaction(() => {
    for (let job = 1; job <= 10_000; job++) report(`${job}`, 'Running');
  });
  expect(slow()).toHaveLength(10_000);
  report('10001', 'Running');
  expect(() => slower()).toThrow('the client does not read');
  expect(slow()).toEqual(['10001 started']);
});
