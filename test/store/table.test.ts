/** Rows come back from their tables as they were saved, whatever type a member has. */
import { expect, it, onTestFinished } from 'vitest';
import type { JobId, TaskId } from '../../src/job.ts';
import type { LiveFileRow, StoredError } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const JOB = '501' as JobId;
const TROUBLE: StoredError = { code: 'fault', message: 'č "quoted"', hint: null, since: 3, retryAt: 4 };

function openStore(): Store {
  const store = new Store({ directory: temporaryDirectory(), service: 'x', owner: true, now: () => 0 });
  onTestFinished(() => store.close());
  const order = { tasks: ['9001' as TaskId], files: ['stdout'], settleAfterMs: null, source: 'config' } as const;
  store.jobs.watch({ ...order, jobId: JOB, results: true }, 1);
  store.jobs.watch({ ...order, jobId: '502' as JobId, results: false, settleAfterMs: 5 }, 2);
  return store;
}

it('a table keeps what SQLite has no type for', () => {
  const store = openStore();
  const [fresh] = store.liveFiles.ofJob(JOB);
  expect(fresh).toMatchObject({ error: null, position: 0, modifiedNs: null });
  const row: LiveFileRow = {
    ...(fresh as LiveFileRow),
    ...{ position: 2 ** 40, error: TROUBLE, rotation: 'copied', verified: 7 },
    ...{ inode: '18446744073709551615', modifiedNs: '1', relativePath: '/a', listedName: '/1/a' },
  };
  store.liveFiles.save(row);
  expect(store.liveFiles.ofJob(JOB)).toEqual([row]);
  store.liveFiles.setError(JOB, row, null);
  expect(store.liveFiles.ofJob(JOB)).toEqual([{ ...row, error: null }]);
});

it('a table stores true, false and null apart', () => {
  const store = openStore();
  store.jobs.endRun(JOB, { polledAt: 3, grownAt: null, refused: 2, failures: 1, error: TROUBLE });
  expect(store.jobs.get(JOB)).toMatchObject({ results: true, settleAfterMs: null, grownAt: null, error: TROUBLE });
  expect(store.jobs.get('502' as JobId)).toMatchObject({ results: false, settleAfterMs: 5, error: null, refused: 0 });
  expect(store.jobs.get('503' as JobId)).toBeUndefined();
});

it('a table brings the row with the same key to what is saved last', () => {
  const store = openStore();
  const pass = {
    jobId: JOB,
    startedAt: 1,
    updatedAt: 2,
    endedAt: null,
    wanted: 3,
    wantedBytes: null,
    done: 0,
    bytes: 0,
    arriving: [['/a', 5]] as const,
  };
  store.resultSyncs.save({ ...pass, way: null, fallback: null });
  const ended = { ...pass, endedAt: 9, wantedBytes: 7, done: 3, way: 'rsync', fallback: 'no key' };
  store.resultSyncs.save(ended);
  expect(store.resultSyncs.get(JOB)).toEqual(ended);
  store.capabilities.set('encoding', 'utf-8');
  store.capabilities.set('encoding', 'windows-1250');
  expect([store.capabilities.get('encoding'), store.capabilities.get('other')]).toEqual(['windows-1250', undefined]);
});
