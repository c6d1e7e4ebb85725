/** What changed since the agent last looked at the store. */
import { expect, it, onTestFinished } from 'vitest';
import type { JobId, TaskId } from '../../src/job.ts';
import type { WatchRequest } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

function setUp() {
  const open = (owner: boolean) => new Store({ directory, service: 'x', owner, now: Date.now });
  const directory = temporaryDirectory();
  const store = open(true);
  onTestFinished(() => store.close());
  const watch = (jobId: string, by = store) => {
    const tasks = ['9001' as TaskId];
    const order: WatchRequest = {
      ...{ jobId: jobId as JobId, tasks, files: ['stdout'], results: false, settleAfterMs: null, source: 'command' },
    };
    by.transaction(() => by.jobs.watch(order, 1));
  };
  const changed = (since: number) => store.jobs.changedSince(since).map(({ jobId }) => jobId);
  const revision = () => Math.max(...store.jobs.changedSince(-1).map((job) => job.revision));
  return { store, open, watch, changed, revision };
}

it('the list of changed jobs is all of it at the beginning, then what was ordered or changed its state, by whichever process', () => {
  const { store, open, watch, changed, revision } = setUp();
  for (const jobId of ['501', '502', '503']) watch(jobId);
  expect(changed(-1).toSorted()).toEqual(['501', '502', '503']);
  const seen = revision();
  expect(changed(seen)).toEqual([]);

  const command = open(false);
  watch('504', command);
  command.jobs.setState('502' as JobId, 'ending');
  command.close();
  expect(changed(seen).toSorted()).toEqual(['502', '504']);
  const later = revision();
  store.jobs.setState('502' as JobId, 'ending');
  expect(changed(later), 'the same state again is no change').toEqual([]);
  watch('503');
  expect(changed(later), 'an order is').toEqual(['503']);
});

it('a job keeps its stall limit when a later command names none', () => {
  const { store } = setUp();
  const order = { jobId: '501' as JobId, tasks: [], files: [], results: true, settleAfterMs: null, source: 'command' };
  store.jobs.watch({ ...order, stallAfterMs: 60_000 } as WatchRequest, 1);
  store.jobs.watch(order as WatchRequest, 2);
  expect(store.jobs.get('501' as JobId)?.stallAfterMs).toBe(60_000);
});

it('the list of changed jobs is not what is only noted of a visit', () => {
  const { store, watch, changed, revision } = setUp();
  watch('501');
  const seen = revision();
  store.jobs.endRun('501' as JobId, { polledAt: 2, grownAt: 2, refused: 0, failures: 1, error: null });
  expect(changed(seen)).toEqual([]);
});
