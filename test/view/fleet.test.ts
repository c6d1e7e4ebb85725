/** Where the view of an agent of a fleet reads the rows of a job: here, or in a copy of those of the others. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { JobtailError } from '../../src/errors.ts';
import type { JobId } from '../../src/job.ts';
import { Store } from '../../src/store/store.ts';
import { type FleetRead, JobStores } from '../../src/view/fleet.ts';
import { until } from '../support/e2e-until.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const [OWN, OTHER, ELSEWHERE, MOVED] = ['1', '2', '3', '4'] as JobId[] as [JobId, JobId, JobId, JobId];

function storeWith(...jobs: JobId[]): Store {
  const store = new Store({ directory: temporaryDirectory(), service: 'x', owner: true, now: () => 1 });
  onTestFinished(() => store.close());
  const order = { tasks: [], files: [], results: true, settleAfterMs: null, source: 'command' } as const;
  for (const jobId of jobs) store.jobs.watch({ ...order, jobId }, 1);
  return store;
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

const idsOf = (stores: JobStores) => stores.all().map(({ jobs }) => jobs.map(({ jobId }) => jobId).sort());

it('jobs of this agent are read here, those of others in the copy, and an outage keeps what was read', async () => {
  const own = storeWith(OWN, MOVED);
  const copy = storeWith(OWN, OTHER, ELSEWHERE, MOVED);
  const places = new Map([OWN, OTHER, ELSEWHERE, MOVED].map((jobId) => [jobId, { owner: 'bert', isElsewhere: false }]));
  places.set(OWN, { owner: 'anna', isElsewhere: false }).set(ELSEWHERE, { owner: 'b\u001bert', isElsewhere: true });
  const read: FleetRead = { store: copy, name: 'anna', agents: [], waitingJobs: 5, places };
  const reads: (readonly JobId[])[] = [];
  const close = vi.fn(async () => {});
  let failure: JobtailError | undefined;
  const source = {
    read: async (listed: readonly JobId[]) => {
      reads.push(listed);
      if (failure !== undefined) throw failure;
      return read;
    },
    close,
  };
  // A read is due again after seconds.
  let [now, wall] = [1_000, 1_000_000];
  vi.spyOn(Date, 'now').mockImplementation(() => wall);
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => void vi.restoreAllMocks());
  const stores = new JobStores(() => own, source);
  expect([stores.isComplete, stores.state, idsOf(stores)]).toEqual([false, undefined, [[OWN, MOVED]]]);
  expect(stores.of(OTHER)).toBe(own);
  const before = stores.version;
  await stores.ready(OTHER);
  expect(reads).toEqual([[OTHER]]);
  // It is not older than some seconds, and has the results of that job.
  for (const listed of [undefined, OTHER, OWN]) await stores.ready(listed);
  now += 1_999;
  stores.refresh();
  expect(reads).toHaveLength(1);
  now += 1;
  stores.refresh();
  await until('the read', () => reads.length === 2);
  expect(stores.version).not.toBe(before);
  const state = { name: 'anna', agents: [], waitingJobs: 5, error: null };
  expect(stores.state).toEqual(state);
  expect(idsOf(stores)).toEqual([[OWN], [OTHER, ELSEWHERE, MOVED]]);
  expect([stores.of(OWN), stores.of(MOVED), stores.withBytes(OTHER)]).toEqual([own, copy, copy]);
  expect(() => stores.withBytes(ELSEWHERE)).toThrow('the agent b\\u{001B}ert has them');
  expect(stores.placeOf('9' as JobId)).toEqual({ owner: null, isElsewhere: false });
  failure = new JobtailError('fleet', 'connection refused', { hint: 'start it' });
  await expect(stores.ready(ELSEWHERE), 'no results are no empty list').rejects.toMatchObject({
    message: 'connection refused',
    hint: 'start it',
  });
  expect(reads[2]).toEqual([OTHER, OWN, ELSEWHERE]);
  const error = { message: 'connection refused', hint: 'start it', since: expect.any(Number) };
  expect(stores.state).toEqual({ ...state, error });
  expect(idsOf(stores)[1]).toEqual([OTHER, ELSEWHERE, MOVED]);
  // It lasts since its first failure, ends with the next read, and the next outage is another one.
  const nextRead = async () => {
    now += 10_001;
    wall += 10_001;
    const before = reads.length;
    await stores.ready(undefined);
    expect(reads).toHaveLength(before + 1);
    await turn();
    return stores.state?.error?.since;
  };
  const since = stores.state?.error?.since;
  expect(await nextRead()).toBe(since);
  const outage = failure;
  failure = undefined;
  expect(await nextRead()).toBeUndefined();
  failure = outage;
  expect(await nextRead()).toBe(wall);
  // A page that showed results a minute ago reads them no more.
  now += 60_000;
  await stores.ready(undefined);
  expect([reads.at(-2), reads.at(-1)]).toEqual([[OTHER, OWN, ELSEWHERE], []]);
  const failed = new JobStores(() => own, source);
  await failed.ready(undefined);
  expect([failed.isComplete, failed.state], 'an unknown job is not missing').toEqual([
    false,
    { name: '', agents: [], waitingJobs: 0, error },
  ]);
  await stores.close();
  expect(close).toHaveBeenCalledOnce();
  const alone = new JobStores(() => own, null);
  alone.refresh();
  await alone.ready(OTHER);
  expect([alone.isComplete, idsOf(alone)]).toEqual([true, [[OWN, MOVED]]]);
});

it('each of two requests for the results of a job waits for the read that has them', async () => {
  const places = new Map([[OTHER, { owner: 'bert', isElsewhere: true }]]);
  const read: FleetRead = { store: storeWith(OTHER), name: 'anna', agents: [], waitingJobs: 0, places };
  const reads: { listed: readonly JobId[]; end: () => void }[] = [];
  const stores = new JobStores(() => storeWith(OWN), {
    read: (listed) => new Promise((resolve) => reads.push({ listed, end: () => resolve(read) })),
    close: async () => {},
  });
  const answered: number[] = [];
  const first = stores.ready(undefined);
  const both = [1, 2].map(async (request) => {
    await stores.ready(OTHER);
    answered.push(request);
  });
  reads[0]?.end();
  await first;
  await until('the read', () => reads.length === 2);
  expect([answered, reads.map(({ listed }) => listed)]).toEqual([[], [[], [OTHER]]]);
  reads[1]?.end();
  await Promise.all(both);
  expect([answered, reads.length]).toEqual([[1, 2], 2]);
});
