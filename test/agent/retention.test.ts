/** Old jobs: which are removed, in which order of steps, and by which clocks. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { forgetJob, removeJobFiles } from '../../src/agent/forget.ts';
import { Retention } from '../../src/agent/retention.ts';
import { clockLines, ServiceClock } from '../../src/agent/service-clock.ts';
import { JobtailError } from '../../src/errors.ts';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../src/job.ts';
import { logLine } from '../../src/printable.ts';
import type { WatchState } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { newState } from '../support/engine.ts';
import { expectCases, SILENT } from '../support/errors.ts';
import { HeldClock, writtenMs } from '../support/held-clock.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The state and the mirrors of a machine whose jobs are removed a day after their last comparison. */
class Place {
  readonly clock = new HeldClock();
  readonly directory = temporaryDirectory();
  readonly mirrorDirectory = path.join(this.directory, 'mirror');
  readonly store = new Store({
    ...{ directory: newState(path.join(this.directory, 'state')), service: 'x', owner: true, now: this.clock.now },
  });
  readonly log: string[] = [];
  serviceAheadMs: number | null | undefined = 0;
  /** Before a job is removed. */
  onRemove: () => void | Promise<void> = () => {};
  readonly retention: Retention;
  isUnreadable = false;
  /** Before the jobs are read. */
  held: Promise<void> | undefined;
  #removing = 0;

  constructor(deleteFiles = true) {
    const gather = (fields: object, phrase: string) => void this.log.push(logLine({ ...fields }, phrase));
    this.retention = new Retention({
      rule: { settledMs: DAY_MS, deleteFiles },
      ...{ clock: this.clock, log: { ...SILENT, warn: gather, info: gather } },
      serviceAheadMs: () => this.serviceAheadMs,
      withJobs: async (work) => {
        await this.held;
        if (this.isUnreadable) throw new JobtailError('store', 'it is locked');
        await work(this.store, (jobId, isDeleted) => this.remove(jobId, isDeleted));
      },
    });
    onTestFinished(async () => {
      await this.retention.stop();
      this.store.close();
    });
  }

  async remove(jobId: JobId, deleteFiles: boolean) {
    expect(this.#removing++, 'removals at a time').toBe(0);
    try {
      await this.onRemove();
      return await forgetJob(this.store, jobId, { ...this, deleteFiles, now: this.clock.now });
    } finally {
      this.#removing--;
    }
  }

  put(jobId: string, state: WatchState = 'settled', error: string | null = null): void {
    const usual = { results: false, settleAfterMs: null, source: 'command' } as const;
    const request = { ...usual, tasks: ['9001' as TaskId], files: LIVE_FILE_NAMES.slice(0, 1) };
    const id = jobId as JobId;
    this.store.transaction(() => this.store.jobs.watch({ ...request, jobId: id }, this.clock.now()));
    const [row] = this.store.liveFiles.ofJob(id);
    if (row !== undefined) this.store.liveFiles.save({ ...row, verified: 0, early: false });
    this.compared(id, error);
    this.store.jobs.setState(id, state);
    fs.mkdirSync(path.join(this.mirrorDirectory, jobId, 'results'), { recursive: true });
    fs.writeFileSync(path.join(this.mirrorDirectory, jobId, 'results', 'a.dat'), 'data');
  }

  /** As a pass does at its end. */
  compared(jobId: JobId, message: string | null): void {
    const error = message === null ? null : ({ code: 'fault', message, hint: null, since: 0 } as const);
    const polledAt = this.clock.now();
    this.store.jobs.endRun(jobId, { polledAt, grownAt: null, refused: 0, failures: 0, error });
  }

  get jobs(): JobId[] {
    return this.store.jobs.all().map(({ jobId }) => jobId);
  }

  get directories(): string[] {
    return fs.existsSync(this.mirrorDirectory) ? fs.readdirSync(this.mirrorDirectory).sort() : [];
  }
}

/** The steps of retention.txt: the jobs, directories and lines of the log that follow. */
async function retained(written: string): Promise<string[]> {
  const steps = written.split('; ');
  const place = new Place(steps[0] !== 'keep files' || steps.shift() === undefined);
  const { clock, store, retention } = place;
  const result: string[] = [];
  let requestId = 0;
  let release = () => {};
  for (const step of steps) {
    const [word = '', first = '', second, ...rest] = step.split(' ');
    const ms = Number(first) * HOUR_MS;
    const renew = () => void (store.requests.renew(requestId, clock.now()) && clock.timer(30_000, renew));
    const work: Readonly<Record<string, () => unknown>> = {
      put: () => place.put(first, second as WatchState | undefined, rest.join(' ') || null),
      many: () => {
        for (let job = 1; job <= Number(first); job += 1) place.put(String(100 + job));
      },
      compared: () => place.compared(first as JobId, null),
      ahead: () => {
        const known: Readonly<Record<string, null | undefined>> = { unknown: undefined, none: null };
        place.serviceAheadMs = first in known ? known[first] : ms;
      },
      start: () => retention.start(),
      stop: () => retention.stop(),
      // The round is held before it reads the jobs, and a stop waits for it.
      hold: () => {
        place.held = new Promise((resolve) => (release = resolve));
      },
      release: () => release(),
      stops: () => void retention.stop().then(() => place.log.push('stopped')),
      hours: () => clock.pass(ms),
      ms: () => clock.pass(Number(first)),
      unreadable: () => Object.assign(place, { isUnreadable: first === 'yes' }),
      request: () => {
        requestId = store.transaction(() => store.requests.add('501' as JobId, first as 'sync', clock.now()));
        renew();
      },
      answer: () => store.transaction(() => store.requests.answer(requestId, '{}')),
      remove: async () => {
        const removed = await place.remove(first as JobId, true).catch(({ code }: JobtailError) => `thrown ${code}`);
        place.log.push(`removed: ${JSON.stringify(removed)}`);
      },
      // The job is followed again: before its files are set aside, or after it, with other files.
      followed: () => {
        const transaction = store.transaction.bind(store);
        const isSettled = () => store.jobs.get('501' as JobId)?.state === 'settled';
        store.transaction = (work) => {
          if (first === 'before' && isSettled()) store.jobs.resume('501' as JobId);
          const done = transaction(work);
          if (first === 'after' && isSettled()) place.put('501', 'watched');
          return done;
        };
      },
      third: () => {
        let removed = 0;
        const stop = () =>
          first === 'stop' ? void retention.stop() : Object.assign(place, { serviceAheadMs: -5 * DAY_MS });
        place.onRemove = () => void (++removed === 3 && stop());
      },
    };
    if (work[word] === undefined) throw new Error(`no step: ${step}`);
    await work[word]();
    if (word !== 'hours' && word !== 'ms') continue;
    const counted = (names: readonly string[]) => (names.length > 9 ? `${names.length}` : names.join(' '));
    result.push(`${step}: ${counted(place.jobs.toSorted())}; files of ${counted(place.directories)}`);
    result.push(...place.log.splice(0).map((line) => `  ${line}`));
  }
  await retention.stop();
  expect(clock.timers).toBe(requestId === 0 ? 0 : 1);
  return result;
}

/** What is known of the clock of the service: after steps of time, of the wall clock, and after responses. */
function clockOf(written: string): string[] {
  const time = { wall: 50 * DAY_MS, passed: 0 };
  const { capabilities } = new Place().store;
  const said: string[] = [];
  const clock = new ServiceClock({
    clock: { now: () => time.wall, monotonic: () => time.passed, timer: () => () => {} },
    log: { ...SILENT, warn: (fields, phrase) => void said.push(logLine({ ...fields }, phrase)) },
    capabilities,
  });
  const set = vi.spyOn(capabilities, 'set');
  return written.split('; ').map((step) => {
    const [word = '', text = '0s'] = step.split(' ');
    const ms = text === 'nothing' ? undefined : writtenMs(text);
    if (word === 'pass') time.passed += ms ?? 0;
    if (word === 'set') time.wall += ms ?? 0;
    if (word === 'ahead') clock.responded(ms === undefined ? undefined : time.wall + ms);
    const lines = clockLines(capabilities, false);
    const asked = clockLines(capabilities, true).filter((line) => !lines.includes(line));
    const ahead = clock.aheadMs == null ? `${clock.aheadMs}` : `${clock.aheadMs / 1_000} s`;
    const stored = set.mock.calls.splice(0).map(([, value]) => `stored ${value}`);
    return [
      `${step}: ahead ${ahead}`,
      ...stored,
      ...said.splice(0),
      ...lines,
      ...asked.map((line) => `asked: ${line}`),
    ].join('; ');
  });
}

it('each round removes and logs what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'retention.txt'), (written) =>
    written.startsWith('clock: ') ? clockOf(written.slice('clock: '.length)) : retained(written),
  );
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
