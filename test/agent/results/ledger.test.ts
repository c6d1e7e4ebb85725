/** Rows of results are saved only after the directories of their files are flushed. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Ledger, Progress, Stamps } from '../../../src/agent/results/ledger.ts';
import { JobtailError } from '../../../src/errors.ts';
import { LIVE_FILE_NAMES, type TaskId } from '../../../src/job.ts';
import type { ResultRow } from '../../../src/store/rows.ts';
import { Store } from '../../../src/store/store.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { JOB, newState } from '../../support/engine.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

/** A store with a job, at a time that the test sets. */
function setUp() {
  const time = { now: 1_000_000 };
  const clock = { ...systemClock, now: () => time.now };
  const directory = temporaryDirectory();
  const store = new Store({ directory: newState(directory), service: 'model', owner: true, now: clock.now });
  onTestFinished(() => store.close());
  const order = { jobId: JOB, tasks: ['9001' as TaskId], files: LIVE_FILE_NAMES, results: true, settleAfterMs: null };
  store.transaction(() => store.jobs.watch({ ...order, source: 'command' }, time.now));
  const options = { store, jobId: JOB, clock, onNetwork: false, intervalMs: 1, progress: { done() {} } };
  const ledger = () => new Ledger({ ...options, stamps: new Stamps(undefined, clock), signal: AbortSignal.any([]) });
  return { time, clock, directory, store, ledger };
}

it('the progress of a sync is saved once a second, at its end, and only if anything is due', () => {
  const { time, clock, store } = setUp();
  const shown: number[] = [];
  const onProgress = ({ done }: { readonly done: number }) => shown.push(done);
  const progress = () => new Progress({ store, jobId: JOB, clock, fallback: 'no way', onProgress });
  const saved = () => store.resultSyncs.get(JOB);
  const nothing = progress();
  nothing.begin(0, []);
  nothing.end();
  expect(saved()).toBeUndefined();
  const one = progress();
  const row = { jobId: JOB, startedAt: time.now, endedAt: null, fallback: 'no way', way: null, arriving: [] };
  one.begin(4, [10, 20]);
  expect(saved()).toEqual({ ...row, updatedAt: time.now, wanted: 4, wantedBytes: 30, done: 0, bytes: 0 });
  time.now += 999;
  one.file('/11/a', 3);
  one.file('/11/b', 4);
  one.file('/11/a', 5);
  one.arrived(9, 'ssh');
  one.done('changed');
  expect(saved()).toMatchObject({ done: 0, updatedAt: time.now - 999 });
  time.now += 1;
  one.file('/11/c', undefined);
  const arriving = [
    ['/11/b', 4],
    ['/11/a', 5],
  ];
  expect(saved()).toMatchObject({ done: 1, bytes: 9, way: 'ssh', arriving, updatedAt: time.now });
  for (const outcome of ['same', 'failed', 'linked', 'left-out'] as const) one.done(outcome);
  one.fallback(null);
  expect(saved()).toMatchObject({ done: 1, fallback: 'no way' });
  one.end();
  expect(saved()).toMatchObject({ done: 5, bytes: 9, fallback: null, endedAt: time.now, arriving: [] });
  expect([one.tally, one.bytes]).toEqual([{ fetched: 2, changed: 1, failed: 1 }, 9]);
  // Each change is shown to the caller.
  expect(shown).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 5, 5]);
  const unknown = progress();
  unknown.begin(2, [10, null]);
  expect(saved()).toMatchObject({ wantedBytes: null });
});

it('a row of a result is not saved while the directory of its file cannot be flushed', async () => {
  const { directory, store, ledger } = setUp();
  const target = path.join(directory, 'results', 'out');
  const failing = ledger();
  failing.fetched(failing.fresh('/11/out'), { bytes: 1, sha256: 'a' }, target);
  await expect(failing.flush()).rejects.toMatchObject({ code: 'ENOENT' });
  expect([...store.results.ofJob(JOB)]).toEqual([]);
  // The next flush of the same sync does its own.
  failing.add(failing.fresh('/11/other'));
  await failing.flush();
  expect([...store.results.ofJob(JOB)]).toMatchObject([{ name: '/11/other' }]);
  failing.forget('/11/other');
  await failing.flush();
  fs.mkdirSync(path.dirname(target));
  const working = ledger();
  working.fetched(working.fresh('/11/out'), { bytes: 1, sha256: 'a' }, target);
  await working.flush();
  expect([...store.results.ofJob(JOB)]).toMatchObject([{ name: '/11/out', state: 'synced' }]);
});

it('a name that is listed no more is forgotten a second later, with the rows of that time', async () => {
  const { time, store, ledger: made } = setUp();
  const ledger = made();
  const rowsAfter = async (passedMs: number) => {
    time.now += passedMs;
    await ledger.keepUp();
    return [...store.results.ofJob(JOB)].map(({ name }) => name);
  };
  ledger.add(ledger.fresh('/11/a'));
  expect([await rowsAfter(999), await rowsAfter(1)]).toEqual([[], ['/11/a']]);
  ledger.forget('/11/a');
  expect(await rowsAfter(500)).toEqual(['/11/a']);
  ledger.add(ledger.fresh('/11/b'));
  expect([await rowsAfter(499), await rowsAfter(1)]).toEqual([['/11/a'], ['/11/b']]);
});

it('what becomes of a row is written, whatever was known of the file and whatever happened to it', async () => {
  const { time, clock, store, directory } = setUp();
  const [live] = store.liveFiles.ofJob(JOB);
  if (live === undefined) throw new Error('it was just watched');
  const target = path.join(directory, 'file');
  const outcomes: string[] = [];
  const stamps = new Stamps(new Map([['/11/a', 'today']]), clock);
  const progress = { done: (outcome: string) => void outcomes.push(outcome) };
  const ledger = new Ledger({
    ...{ store, jobId: JOB, clock, onNetwork: false, intervalMs: 60_000, progress, stamps },
    signal: AbortSignal.any([]),
  });
  const failed = (row: ResultRow, code: string, syscall: string) => {
    const cause = Object.assign(new Error(), { code, syscall });
    ledger.failed(row, new JobtailError('local-io', 'no write', { cause, hint: 'look' }), 'it fails');
  };
  const events: Readonly<Record<string, (row: ResultRow) => void>> = {
    'fetched, as before': (row) => ledger.fetched(row, { bytes: 3, sha256: 'a' }),
    'fetched, another content': (row) => ledger.fetched(row, { bytes: 4, sha256: 'b' }, target),
    linked: (row) => ledger.linked(row, live, target),
    postponed: (row) => ledger.postponed(row, 'refused', 'too \u001b large'),
    'no such name here': (row) => failed(row, 'EILSEQ', 'open'),
    'no such read': (row) => failed(row, 'EINVAL', 'read'),
    'too large here': (row) => failed(row, 'EFBIG', 'write'),
    hung: (row) => ledger.hung(row, 61_400),
    'waited behind': (row) => ledger.waitedBehind(row),
    requested: (row) => void ledger.saveRequested(row),
    'not sent': (row) => ledger.notSent(row, 'no data; requested again once a day'),
    'not sent, name unknown': (row) => ledger.notSent({ ...row, name: '/11/\ufffd' }, ''),
    'is a pipe': (row) => ledger.irregular(row, 'a named pipe'),
    'is a directory': (row) => ledger.irregular(row, 'a directory'),
    'still left out': (row) => ledger.stillLeftOut(row),
    'still failed': () => ledger.stillFailed(),
    ...Object.fromEntries(
      (['nothing', 'unreadable', 'unclear'] as const).map((inPlace) => [
        `no file: ${inPlace}`,
        (row: ResultRow) => ledger.noFile(row, inPlace),
      ]),
    ),
  };
  const fresh = ledger.fresh('/11/a');
  const before = { ...fresh, state: 'synced', bytes: 3, sha256: 'a', fetchedAt: 900_000, dueAt: 9_000_000 } as const;
  const rows: Readonly<Record<string, ResultRow>> = {
    fresh,
    fetched: { ...before, intervalMs: 2_400_000, stamp: 'yesterday', stampProven: true, hangs: 2 },
    'in flux': { ...before, state: 'in-flux' },
    pipe: { ...fresh, state: 'left-out', reason: 'it is a named pipe', hangs: 1 },
    directory: { ...fresh, state: 'left-out', reason: 'it is a directory' },
    gone: { ...fresh, reason: 'no file was there when it was requested: requested again after the next listing' },
  };
  let printed = '';
  time.now += 500;
  for (const [what, row] of Object.entries(rows)) {
    printed += `${what}\n`;
    for (const [event, happen] of Object.entries(events)) {
      store.transaction(() => store.results.forgetAll([...store.results.ofJob(JOB)]));
      happen(row);
      await ledger.flush();
      const changed = [...store.results.ofJob(JOB)].map((now) =>
        Object.entries(now).filter(([key, value]) => value !== row[key as keyof ResultRow]),
      );
      const shown = changed.flat().map(([key, value]) => `${key}=${value}`);
      printed += `  ${event}: ${[...outcomes.splice(0), ...shown].join(', ')}\n`;
    }
  }
  await expect(printed).toMatchFileSnapshot('ledger.txt');
});
