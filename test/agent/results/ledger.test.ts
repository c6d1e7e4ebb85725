/** Rows of results are saved only after the directories of their files are flushed. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Ledger, Stamps } from '../../../src/agent/results/ledger.ts';
import { LIVE_FILE_NAMES } from '../../../src/job.ts';
import { Store } from '../../../src/store/store.ts';
import { systemClock as clock } from '../../../src/system/clock.ts';
import { JOB, newState } from '../../support/engine.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

it('a row of a result is not saved while the directory of its file cannot be flushed', async () => {
  const directory = temporaryDirectory();
  const store = new Store({ directory: newState(directory), service: 'model', owner: true, now: clock.now });
  const order = { jobId: JOB, tasks: [], files: LIVE_FILE_NAMES, results: true, settleAfterMs: null } as const;
  store.transaction(() => store.jobs.watch({ ...order, source: 'command' }, clock.now()));
  const options = { store, jobId: JOB, clock, onNetwork: false, intervalMs: 1, progress: { done() {} } };
  const ledger = () => new Ledger({ ...options, stamps: new Stamps(undefined, clock) });
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
  store.close();
});
