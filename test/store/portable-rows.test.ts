/** The rows of a job travel from one store to another, and what changes of them is noted, whatever changes it. */
import { describe, expect, it } from 'vitest';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../src/job.ts';
import type { PortableRow, RowChange } from '../../src/store/portable-rows.ts';
import type { ResultRow } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { NEW_RESULT, NEW_ROW } from '../support/live-place.ts';
import { jobOf } from '../support/model-remote.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const JOB = '501' as JobId;
const OTHER = '502' as JobId;
const TASK = '9001' as TaskId;
const ORDER = { tasks: [TASK], files: LIVE_FILE_NAMES, results: true, settleAfterMs: null, source: 'command' } as const;

function newStore(directory = temporaryDirectory()): Store {
  return new Store({ directory, service: 'model', owner: true, now: () => 0 });
}

const result = (name: string, state: ResultRow['state'] = 'synced'): ResultRow => ({
  ...{ ...NEW_RESULT, jobId: JOB, name, state, bytes: 7, sha256: 'abc', fetchedAt: 2, dueAt: 3, intervalMs: 4 },
});

function filled(): Store {
  const store = newStore();
  store.transaction(() => {
    store.jobs.watch({ ...ORDER, jobId: JOB }, 1);
    store.jobs.watch({ ...ORDER, jobId: OTHER, tasks: null }, 1);
    const row = { ...NEW_ROW, jobId: JOB, taskId: TASK, position: 2 ** 40, inode: '7', modifiedNs: '8' };
    store.liveFiles.save({ ...row, generation: 3 });
    const login = { protocol: 'SftpScp', host: 'h', basePath: '/', username: 'u', publicKey: 'k' } as const;
    store.leases.open({ ...login, leaseId: store.leases.ask(JOB, 5) }, 6);
  });
  store.results.saveAll([result('/a'), result('/b', 'failed'), result("/'\u0000\u2028\ud83d\ude00", 'refused')]);
  store.results.setWithoutRow(JOB, { refused: 5, 'left-out': 0 });
  store.transaction(() => {
    const event = { id: 'e', type: 'match', time: 't', count: 2, jobId: JOB, text: "'\u0000\u2028" } as const;
    const at = { madeAt: 1, dueAt: 2, attempts: 3, lastError: 'HTTP status 503' };
    store.outbox.add([{ deliveryId: 'd', jobId: JOB, rule: 'r', event, ...at }]);
    // An event of the agent itself stays here.
    const ofAgent = { id: 'a', type: 'agent-degraded', time: 't', count: 1 } as const;
    store.outbox.add([{ deliveryId: 'of the agent', jobId: null, rule: 'r', event: ofAgent, ...at }]);
    store.outbox.savePosition({ jobId: JOB, taskId: TASK, file: 'stdout', generation: 3, position: 9, lines: 4 });
    const notified = { jobState: 'Running', startedAt: null, watchState: 'watched', stalledAt: null } as const;
    store.outbox.jobs.save({ ...notified, jobId: JOB, hasFiles: true });
  });
  return store;
}

const rowsOf = (store: Store, jobId: JobId) => [...store.portableRows.ofJob(jobId)];
const put = (store: Store, rows: readonly PortableRow[], hasResults = true) =>
  store.transaction(() => store.portableRows.take(rows, hasResults));

describe('the rows of a job', () => {
  it('are in another store what they were, and counted as they were, also when they come again', () => {
    const [from, to] = [filled(), newStore()];
    for (let position = 1; position < 4; position++) {
      from.liveFiles.save({ ...NEW_ROW, jobId: JOB, taskId: TASK, position });
      from.results.saveAll([{ ...result('/a'), bytes: position }]);
      expect(put(to, rowsOf(from, JOB))).toEqual([]);
    }
    expect(rowsOf(to, JOB)).toEqual(rowsOf(from, JOB));
    expect(to.results.counts(JOB)).toEqual(from.results.counts(JOB));
    expect(to.liveFiles.ofJob(JOB)).toEqual(from.liveFiles.ofJob(JOB));
    expect(to.leases.allOpen()).toMatchObject([{ jobId: JOB, publicKey: 'k' }]);
    expect(to.jobs.get(OTHER)).toBeUndefined();
  });

  it('that a table refuses are returned', () => {
    const rows = rowsOf(filled(), JOB).filter(({ table }) => table !== 'jobs');
    expect(put(newStore(), rows)).toEqual(rows);
  });

  it('say nothing of files where the mirror directory is another one', () => {
    const [from, to] = [filled(), newStore()];
    put(to, rowsOf(from, JOB));
    to.transaction(() => to.portableRows.withoutFiles(JOB));
    const fresh = { position: 0, inode: null, modifiedNs: null, generation: 3 };
    expect(to.liveFiles.ofJob(JOB)).toContainEqual(expect.objectContaining(fresh));
    expect([...to.results.ofJob(JOB)]).toEqual([]);
    expect(to.results.counts(JOB).listed).toBe(0);
    expect(to.leases.allOpen()).toHaveLength(1);
  });

  it('of results can be counts alone, as for a look at them', () => {
    const [from, to] = [filled(), newStore()];
    const rows = rowsOf(from, JOB).filter(({ table }) => table !== 'result_files');
    put(to, rows, false);
    expect(to.results.counts(JOB)).toEqual(from.results.counts(JOB));
  });

  it('may have columns that only one of the two stores has, and `?` of an older agent, up to which they are committed', () => {
    const [from, to] = [filled(), newStore()];
    const older = { of_a_later_version: 1, refused: undefined, inexact: '[{"start":5,"length":2}]' };
    const known = { checksum: 'of more', verified: 9 };
    const rows = rowsOf(from, JOB).map((one) => {
      const row = JSON.parse(one.row ?? '') as { readonly file?: string };
      return { ...one, row: JSON.stringify({ ...row, ...known, ...older, position: row.file === 'log' ? 3 : 9 }) };
    });
    put(to, rows);
    const exact = { checksum: null, modifiedNs: null, verified: null };
    const committed = from.liveFiles
      .ofJob(JOB)
      .map((row) => ({ ...row, ...exact, position: row.file === 'log' ? 3 : 5 }));
    expect(to.liveFiles.ofJob(JOB)).toEqual(committed);
  });

  it('are gone when they are forgotten, and those of others stay', () => {
    const store = filled();
    store.requests.add(JOB, 'sync', 1);
    store.transaction(() => store.portableRows.forget(JOB));
    expect(rowsOf(store, JOB)).toEqual([]);
    expect(store.requests.open('pass')).toEqual([]);
    expect(rowsOf(store, OTHER)).not.toEqual([]);
  });
});

describe('changes of rows', () => {
  it('that are carried over, a few at a time between others, make both stores equal', () => {
    const [from, to] = [newStore(), newStore()];
    from.transaction(() => from.jobs.watch({ ...ORDER, jobId: JOB }, 1));
    const kept = new Map(rowsOf(from, JOB).map((row) => [`${row.table} ${row.key}`, row]));
    const changes = from.noteChanges();
    const carry = () => {
      const taken = changes.ofJob(JOB, 3);
      for (const change of taken) kept.set(`${change.table} ${change.key}`, from.portableRows.read(change));
      changes.done(taken);
      return taken.length;
    };
    for (let round = 1; round < 5; round++) {
      from.results.saveAll([{ ...result('/a'), bytes: round }, result(`/of round ${round}`)]);
      from.liveFiles.save({ ...NEW_ROW, jobId: JOB, taskId: TASK, position: round });
      from.results.forgetAll([{ jobId: JOB, name: `/of round ${round - 1}` }]);
      expect(carry()).toBe(3);
      from.results.setWithoutRow(JOB, { refused: round, 'left-out': 0 });
      from.leases.ask(JOB, 10);
    }
    while (carry() > 0);
    expect(changes.jobs()).toEqual([]);
    put(to, [...kept.values()]);
    expect(rowsOf(to, JOB)).toEqual(rowsOf(from, JOB));
  });

  it('that come while a row is carried over are carried over, too', () => {
    const store = filled();
    const changes = store.noteChanges();
    const set = (bytes: number) => store.results.saveAll([{ ...result('/a'), bytes }]);
    set(1);
    const taken = changes.ofJob(JOB, 100);
    set(2);
    changes.done(taken);
    expect(changes.ofJob(JOB, 100)).toContainEqual(expect.objectContaining({ table: 'result_files', key: '["/a"]' }));
    store.results.forgetAll([{ jobId: JOB, name: '/a' }]);
    const removed = changes.ofJob(JOB, 100).findLast(({ table }) => table === 'result_files') as RowChange;
    const row = store.portableRows.read(removed);
    expect(row).toEqual({ jobId: JOB, table: 'result_files', key: '["/a"]', row: null });
    expect(put(store, [row])).toEqual([]);
  });

  it('are all rows of a job at once, but those of its results, which a listing finds', () => {
    const store = filled();
    const changes = store.noteChanges();
    for (let times = 0; times < 2; times++) changes.addAll(JOB);
    const rows = rowsOf(store, JOB).filter(({ table }) => !table.startsWith('result_'));
    const named = (row: { readonly table: string; readonly key: string }) => `${row.table} ${row.key}`;
    expect(changes.ofJob(JOB, 100).map(named).sort()).toEqual(rows.map(named).sort());
  });

  it('are those of the job that waits longest first, and are dropped with it', () => {
    const store = filled();
    const report = { jobId: JOB, information: jobOf(JOB, 'Running'), since: 1, reportedAt: 1 };
    store.jobInformation.save(report);
    const changes = store.noteChanges();
    // A poll or report without news is no change.
    store.jobs.endRun(JOB, { polledAt: 9, grownAt: null, refused: 0, failures: 0, error: null });
    store.jobInformation.save({ ...report, reportedAt: 2 });
    expect(changes.jobs()).toEqual([]);
    store.jobs.setState(OTHER, 'ending');
    store.jobs.setState(JOB, 'ending');
    expect(changes.jobs()).toEqual([OTHER, JOB]);
    changes.done(changes.ofJob(JOB, 100));
    expect(changes.jobs()).toEqual([OTHER]);
    store.jobs.setState(JOB, 'ended');
    store.transaction(() => store.portableRows.forget(OTHER));
    changes.forget(OTHER);
    expect(changes.jobs()).toEqual([JOB]);
  });
});

it('a state keeps its id over a restart, and another state has another id', () => {
  const directory = temporaryDirectory();
  const ids = [directory, directory, temporaryDirectory()].map((at) => {
    const store = newStore(at);
    const id = store.fleetLeases.stateId();
    store.close();
    return id;
  });
  expect([ids[1], new Set(ids).size]).toEqual([ids[0], 2]);
});
