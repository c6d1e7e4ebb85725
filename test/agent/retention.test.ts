/** Old jobs: which are removed, in which order of steps, and by which clocks. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { forgetJob, removeJobFiles } from '../../src/agent/forget.ts';
import { Retention } from '../../src/agent/retention.ts';
import { clockLines, ServiceClock, storedAheadMs } from '../../src/agent/service-clock.ts';
import { JobtailError } from '../../src/errors.ts';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../src/job.ts';
import { logLine } from '../../src/printable.ts';
import type { WatchState } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { newState } from '../support/engine.ts';
import { SILENT } from '../support/errors.ts';
import { HeldClock } from '../support/held-clock.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The state and the mirrors of a machine whose jobs are removed a day after their last comparison. */
class Place {
  readonly clock = new HeldClock();
  readonly directory = temporaryDirectory();
  readonly store = new Store({
    ...{ directory: newState(path.join(this.directory, 'state')), service: 'x', owner: true, now: this.clock.now },
  });
  readonly log: string[] = [];
  readonly removed: JobId[] = [];
  serviceAheadMs: number | null | undefined = 0;
  remove = (jobId: JobId, deleteFiles: boolean) =>
    forgetJob(this.store, jobId, { mirrorDirectory: this.mirrorDirectory, deleteFiles, now: this.clock.now });
  readonly retention: Retention;

  constructor(deleteFiles = true) {
    const gather = (fields: object, phrase: string) => void this.log.push(logLine({ ...fields }, phrase));
    this.retention = new Retention({
      rule: { settledMs: DAY_MS, deleteFiles },
      clock: this.clock,
      log: { ...SILENT, warn: gather },
      serviceAheadMs: () => this.serviceAheadMs,
      withJobs: (work) =>
        work(this.store, async (jobId, isDeleted) => {
          const files = await this.remove(jobId, isDeleted);
          this.removed.push(jobId);
          return files;
        }),
    });
    onTestFinished(async () => {
      await this.retention.stop();
      this.store.close();
    });
  }

  get mirrorDirectory(): string {
    return path.join(this.directory, 'mirror');
  }

  put(jobId: string, state: WatchState = 'settled', error: JobtailError | null = null): void {
    const usual = { results: false, settleAfterMs: null, source: 'command' } as const;
    const request = { ...usual, tasks: ['9001' as TaskId], files: LIVE_FILE_NAMES.slice(0, 1) };
    const id = jobId as JobId;
    const stored = error && { code: error.code, message: error.message, hint: null, since: 0 };
    this.store.transaction(() => this.store.jobs.watch({ ...request, jobId: id }, this.clock.now()));
    const [row] = this.store.liveFiles.ofJob(id);
    if (row !== undefined) this.store.liveFiles.save({ ...row, verified: 0, early: false });
    const polledAt = this.clock.now();
    this.store.jobs.endRun(id, { polledAt, grownAt: null, refused: 0, failures: 0, error: stored });
    this.store.jobs.setState(id, state);
    fs.mkdirSync(path.join(this.mirrorDirectory, jobId, 'results'), { recursive: true });
    fs.writeFileSync(path.join(this.mirrorDirectory, jobId, 'results', 'a.dat'), 'data');
  }

  get jobs(): JobId[] {
    return this.store.jobs.all().map(({ jobId }) => jobId);
  }

  get directories(): string[] {
    return fs.readdirSync(this.mirrorDirectory).sort();
  }

  /** From one round to after the next one. */
  async round(): Promise<void> {
    await this.clock.pass(HOUR_MS + 1);
  }
}

it.each([true, false])(
  'removes settled jobs whose time is over, and no others; deleteFiles: %s',
  async (deleteFiles) => {
    const place = new Place(deleteFiles);
    place.put('501');
    place.put('502', 'settled', new JobtailError('fault', 'no last pass'));
    place.put('503', 'ended');
    place.put('504', 'watched');
    place.put('506');
    await place.clock.pass(DAY_MS - HOUR_MS);
    place.put('505');
    // A command has compared it since.
    const compared = { polledAt: place.clock.now(), grownAt: null, refused: 0, failures: 0, error: null };
    place.store.jobs.endRun('506' as JobId, compared);
    place.retention.start();
    await place.clock.pass(1);
    expect(place.removed).toEqual([]);
    await place.round();
    const others = ['502', '503', '504', '505', '506'];
    expect(place.jobs.toSorted()).toEqual(others);
    expect(place.directories).toEqual([...(deleteFiles ? [] : ['501']), ...others]);
    await place.round();
    expect(place.log).toEqual([expect.stringMatching(/^old job not removed .*502.*no last pass/)]);
  },
);

it.each<[string, (place: Place) => unknown]>([
  ['the agent stops', ({ retention }) => void retention.stop()],
  ['the clock is set', (place) => (place.serviceAheadMs = -5 * DAY_MS)],
])('removes one job after the other, and no further one when %s', async (_, stop) => {
  const place = new Place();
  for (let job = 1; job <= 50; job += 1) place.put(String(100 + job));
  await place.clock.pass(2 * DAY_MS);
  const { remove } = place;
  let under = 0;
  place.remove = async (...job) => {
    under += 1;
    expect(under).toBe(1);
    const files = await remove(...job);
    under -= 1;
    if (place.removed.length === 2) stop(place);
    return files;
  };
  for (let starts = 0; starts < 2; starts++) {
    place.retention.start();
    await place.round();
  }
  expect(place.removed).toHaveLength(3);
  expect(place.jobs).toHaveLength(47);
  expect(place.directories).toEqual(place.jobs);
});

it.each(['sync', 'follow', 'verify'] as const)(
  'a job that a command works on stays until that has ended: %s',
  async (kind) => {
    const place = new Place();
    place.put('1');
    const { store, clock } = place;
    await clock.pass(DAY_MS);
    const requestId = store.transaction(() => store.requests.add('1' as JobId, kind, clock.now()));
    const renew = () => {
      store.requests.renew(requestId, clock.now());
      clock.timer(MINUTE_MS / 2, renew);
    };
    renew();
    place.retention.start();
    await clock.pass(2 * HOUR_MS);
    expect(place.removed).toEqual([]);
    expect(place.log).toHaveLength(1);
    store.transaction(() => store.requests.answer(requestId, '{}'));
    await clock.pass(HOUR_MS);
    expect(place.removed).toEqual(['1']);
  },
);

it('removes nothing before the first response of the service', async () => {
  const place = new Place();
  place.put('501');
  place.serviceAheadMs = undefined;
  await place.clock.pass(2 * DAY_MS);
  place.retention.start();
  await place.clock.pass(2 * HOUR_MS);
  expect(place.removed).toEqual([]);
  place.serviceAheadMs = DAY_MS;
  await place.clock.pass(9_999);
  expect(place.removed).toEqual([]);
  await place.clock.pass(1);
  expect(place.removed).toEqual(['501']);
});

it('jobs that cannot be read are logged each time, but not after a stop', async () => {
  const clock = new HeldClock();
  const log: string[] = [];
  let release = () => {};
  const retention = new Retention({
    ...{ rule: { settledMs: 1, deleteFiles: false }, clock, serviceAheadMs: () => 0 },
    log: { ...SILENT, warn: (fields, phrase) => void log.push(logLine({ ...fields }, phrase)) },
    withJobs: async () => {
      await new Promise<void>((resolve) => (release = resolve));
      throw new JobtailError('store', 'it is locked');
    },
  });
  retention.start();
  for (const rounds of [1, 2]) {
    release();
    await clock.pass(HOUR_MS);
    expect(log).toEqual(Array(rounds).fill('old jobs not read: it is locked'));
  }
  let isStopped = false;
  const stopped = retention.stop().then(() => (isStopped = true));
  await clock.pass(1);
  expect(isStopped, 'before the round has ended').toBe(false);
  release();
  await stopped;
  expect([log.length, clock.timers]).toEqual([2, 0]);
});

it('the files of a job are counted with those that a kill left, and reported while its rows are removed', async () => {
  const place = new Place();
  place.put('501');
  const { store, clock, mirrorDirectory } = place;
  fs.cpSync(path.join(mirrorDirectory, '501'), path.join(mirrorDirectory, '501.removed'), { recursive: true });
  const reported: unknown[] = [];
  const onForgotten = (removed: object) => reported.push(removed, store.jobs.get('501' as JobId));
  const options = { mirrorDirectory, deleteFiles: true, now: clock.now, onForgotten };
  const removed = { files: 2, bytes: 8 };
  expect(await forgetJob(store, '501' as JobId, options)).toEqual(removed);
  expect([reported, place.directories]).toEqual([[removed, undefined], []]);
  const claim = () => expect.unreachable();
  await expect(removeJobFiles(mirrorDirectory, '../state' as JobId, claim)).rejects.toThrow('not an id: "../state"');
});

it.each([31, -31])(
  'removes nothing while the clock of the service is %s days ahead, and says so once each time',
  async (days) => {
    const place = new Place();
    place.put('501');
    await place.clock.pass(2 * DAY_MS);
    place.serviceAheadMs = days * DAY_MS;
    place.retention.start();
    await place.clock.pass(DAY_MS);
    expect(place.removed).toEqual([]);
    expect(place.log).toEqual([`old jobs kept, clocks differ aheadMs=${days * DAY_MS}`]);
    place.serviceAheadMs = 0;
    await place.round();
    expect(place.removed).toEqual(['501']);
    place.serviceAheadMs = days * DAY_MS;
    for (let rounds = 0; rounds < 2; rounds++) await place.round();
    expect(place.log).toHaveLength(2);
    await place.retention.stop();
    expect(place.clock.timers).toBe(0);
  },
);

it('the clock of the service runs on since its last response', () => {
  const time = { wall: 50 * DAY_MS, passed: 0 };
  const { capabilities } = new Place().store;
  const said: string[] = [];
  const clock = new ServiceClock({
    clock: { now: () => time.wall, monotonic: () => time.passed, timer: () => () => {} },
    log: { ...SILENT, warn: (fields, phrase) => void said.push(logLine({ ...fields }, phrase)) },
    capabilities,
  });
  expect(clock.aheadMs).toBe(undefined);
  clock.responded(undefined);
  expect(clock.aheadMs).toBe(null);
  expect(clockLines(capabilities, false)).toEqual([]);
  expect(clockLines(capabilities, true)).toEqual([expect.stringContaining('sends no time')]);
  clock.responded(49 * DAY_MS);
  expect(clock.aheadMs).toBe(-DAY_MS);
  time.passed += HOUR_MS;
  expect(clock.aheadMs).toBe(HOUR_MS - DAY_MS);
  // The wall clock of this machine is set.
  time.wall -= 40 * DAY_MS;
  expect(clock.aheadMs).toBe(39 * DAY_MS + HOUR_MS);
  const set = vi.spyOn(capabilities, 'set');
  for (const aheadMs of [29_000, 29_500, 600_000, 640_000, 31_000]) clock.responded(time.wall + aheadMs);
  expect(said).toEqual([expect.stringMatching(/clock of the service ahead.*600000/)]);
  expect(clockLines(capabilities, false)).toEqual([expect.stringMatching(/about 30 s ahead.*never listed/)]);
  // Stored if it changed, in steps of half a minute.
  expect(set.mock.calls.map(([, value]) => value)).toEqual(['600000', '630000', '30000']);
  for (const aheadMs of [0, 30_000, -DAY_MS]) {
    clock.responded(time.wall + aheadMs);
    expect(clockLines(capabilities, true)).toHaveLength(aheadMs > 0 ? 1 : 0);
  }
  // A machine whose clock is a month ahead.
  clock.responded(time.wall - 31 * DAY_MS);
  expect(storedAheadMs(capabilities)).toBe(-31 * DAY_MS);
  expect(clockLines(capabilities, false)).toEqual([
    'the clock of this machine is 31 d ahead of the service: set it by NTP',
  ]);
});

it('a job that is followed again keeps its files, or writes others from then on', async () => {
  const place = new Place();
  place.put('501');
  const forget = () => place.remove('501' as JobId, true);
  const { store } = place;
  const transaction = store.transaction.bind(store);
  let transactions = 0;
  // Before the transaction that sets the files aside.
  store.transaction = (work) => {
    transactions += 1;
    if (transactions === 1) store.jobs.resume('501' as JobId);
    return transaction(work);
  };
  await expect(forget()).rejects.toMatchObject({ code: 'usage' });
  expect(place.directories).toEqual(['501']);
  store.jobs.setState('501' as JobId, 'settled');
  // After it: what is written then is not removed.
  store.transaction = (work) => {
    const done = transaction(work);
    if (store.jobs.get('501' as JobId)?.state === 'settled') place.put('501', 'watched');
    return done;
  };
  await expect(forget()).rejects.toMatchObject({ code: 'usage' });
  expect(place.directories).toEqual(['501']);
  expect(place.jobs).toEqual(['501']);
});
