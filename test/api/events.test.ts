/** The events that clients listen to: the same for each of them, from the moment when it began to listen. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { EventFeed } from '../../src/api/events.ts';
import { SharedState } from '../../src/daemon/state.ts';
import { JobtailError } from '../../src/errors.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import type { NotifyEvent } from '../../src/notification.ts';
import { ownState } from '../cli/own-state.ts';
import { until } from '../support/e2e-until.ts';
import { jobOf } from '../support/model-remote.ts';

async function setUp(maxEvents?: number) {
  const { config, store } = await ownState();
  const failures: unknown[] = [];
  const feed = new EventFeed(new SharedState(config), (error) => failures.push(error), maxEvents);
  const report = (jobId: string, state: string, results = false) =>
    store.transaction(() => {
      const order = { jobId: jobId as JobId, results, settleAfterMs: null, source: 'command' } as const;
      store.jobs.watch({ ...order, tasks: ['9001' as TaskId], files: ['stdout'] }, 1);
      const information = jobOf(jobId, state);
      store.jobInformation.save({ jobId: order.jobId, information, since: 1, reportedAt: 1 });
    });
  const listen = () => {
    const [read, heard]: [() => readonly NotifyEvent[], NotifyEvent[]] = [feed.reader(), []];
    const hears = (...wanted: string[]) =>
      until(wanted.join(), async () => {
        heard.push(...read());
        return heard.map(({ jobId, type }) => `${jobId} ${type}`).join() === wanted.join();
      });
    return { read, heard, hears };
  };
  return { report, listen, failures, store };
}

it('each client gets the same events, once and in order, but none from before it began', async () => {
  const { report, listen, failures } = await setUp();
  report('501', 'Running');
  const first = listen();
  report('501', 'Finished');
  await first.hears('501 finished');
  const second = listen();
  report('502', 'Running');
  await second.hears('502 started');
  await first.hears('501 finished', '502 started');
  expect(second.heard).toEqual(first.heard.slice(1));
  expect(failures).toEqual([]);
});

it('a settled job has all its results only where that is proven', async () => {
  const { report, listen, store } = await setUp();
  const both = ['501', '502'] as JobId[];
  for (const jobId of both) report(jobId, 'Finished', true);
  for (const row of store.liveFiles.ofJob('502' as JobId)) store.liveFiles.save({ ...row, verified: 0 });
  const client = listen();
  store.transaction(() => both.forEach((jobId) => void store.jobs.setState(jobId, 'settled')));
  await client.hears('502 results-complete');
});

it('an error of the agent while events are read is reported, an absent state is not; no event is missed', async () => {
  const { report, listen, failures } = await setUp();
  report('501', 'Running');
  const client = listen();
  report('501', 'Finished');
  const error = new Error('broken');
  const reads = vi.spyOn(SharedState.prototype, 'store', 'get');
  const clock = vi.spyOn(performance, 'now');
  onTestFinished(() => [reads, clock].forEach((each) => void each.mockRestore()));
  const begun = performance.now();
  const heard = [new JobtailError('store', 'there is none'), error, undefined].map((fails, index) => {
    clock.mockReturnValue(begun + (index + 1) * 1_000);
    if (fails !== undefined)
      reads.mockImplementationOnce(() => {
        throw fails;
      });
    return [...client.read(), ...client.read()].map(({ type }) => type);
  });
  expect(heard).toEqual([[], [], ['finished']]);
  // Once for all that ask within a second.
  expect([failures, reads.mock.calls.length]).toEqual([[error], 3]);
});

it('a client that reads much later than others is cut off, and they go on', async () => {
  const { report, listen } = await setUp(2);
  const slow = listen();
  for (const jobId of ['501', '502', '503']) report(jobId, 'Running');
  await until('more than is kept', async () => {
    try {
      slow.read();
      return false;
    } catch (error) {
      return String(error).includes('the client does not read');
    }
  });
  const other = listen();
  report('504', 'Running');
  await other.hears('504 started');
});
