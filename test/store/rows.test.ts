/** The rows of a job: what changed of it, what is searched for, and what stays after it. */
import { expect, it, onTestFinished } from 'vitest';
import type { JobId, LiveFileName, TaskId } from '../../src/job.ts';
import { newEvent } from '../../src/notify/events.ts';
import { answeredAt, shownJobService, shownSearch } from '../../src/store/jobs.ts';
import { outageIn, saveOutage } from '../../src/store/outage.ts';
import { type DeliveryRow, MAX_WAITING } from '../../src/store/outbox.ts';
import { shownSync } from '../../src/store/results.ts';
import type { JobRow, LiveFileRow, ResultRow, TaskSearchRow, WatchRequest, WatchState } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { NEW_RESULT } from '../support/live-place.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const JOB = '501' as JobId;
const HOUR_MS = 3_600_000;
const STDOUT = { taskId: '9001' as TaskId, file: 'stdout' } as const;
const REQUEST: WatchRequest = {
  ...{ jobId: JOB, tasks: [STDOUT.taskId], files: ['stdout'], results: false, settleAfterMs: null, source: 'command' },
};

function openStore(directory = temporaryDirectory()): Store {
  const store = new Store({ directory, service: 'x', owner: true, now: () => 1 });
  onTestFinished(() => store.close());
  store.jobs.watch(REQUEST, 1);
  return store;
}

const delivery = (line: number, more: Partial<DeliveryRow> = {}): DeliveryRow => ({
  ...{ deliveryId: `delivery ${line}`, jobId: JOB, rule: 'rule', madeAt: line, dueAt: line, attempts: 0 },
  ...{ lastError: null, event: { ...newEvent('match', line, { count: 1 }), id: `${line}` } },
  ...more,
});
const idsOf = (rows: readonly DeliveryRow[]) => rows.map(({ deliveryId }) => Number(deliveryId.split(' ')[1]));

it('of a removed job its id stays, and the notifications that wait', () => {
  const store = openStore();
  store.outbox.add([delivery(1), delivery(2, { dueAt: null })]);
  store.outbox.save(delivery(2, { dueAt: null }));
  expect([store.jobs.isForgotten(JOB), store.jobs.known()]).toEqual([false, new Set([JOB])]);
  store.jobs.forget(JOB, 7);
  expect(store.jobs.get(JOB)).toBeUndefined();
  expect(store.liveFiles.ofJob(JOB)).toEqual([]);
  expect([store.jobs.isForgotten(JOB), store.jobs.known()]).toEqual([true, new Set([JOB])]);
  expect(store.outbox.all()).toEqual([delivery(1, { jobId: null })]);
  store.jobs.watch(REQUEST, 8);
  expect(store.jobs.isForgotten(JOB)).toBe(false);
});

it('a file whose content is skipped is read from there on, also one of a single byte; an empty one has a first line', () => {
  const { liveFiles, outbox } = openStore();
  const at = { jobState: null, startedAt: null, watchState: 'watched', stalledAt: null, hasFiles: true } as const;
  outbox.jobs.save({ jobId: JOB, ...at });
  const [row] = liveFiles.ofJob(JOB) as [LiveFileRow];
  const after = (generation: number, position: number) => {
    liveFiles.save({ ...row, generation, position });
    const unread = outbox.unreadFiles().length;
    outbox.skip({ ...row, generation, position });
    return [unread, outbox.unreadFiles().length, outbox.position(JOB, row)];
  };
  const read = { jobId: JOB, ...STDOUT };
  expect(after(1, 0)).toEqual([0, 0, undefined]);
  expect(after(1, 1)).toEqual([1, 0, { ...read, generation: 1, position: 1, lines: null }]);
  expect(after(2, 0)).toEqual([1, 0, { ...read, generation: 2, position: 0, lines: 0 }]);
});

it('a delivery that was attempted counts no later one: one more waits for the next attempts', () => {
  const { outbox } = openStore();
  const first = Array.from({ length: MAX_WAITING }, (_, line) => delivery(line));
  outbox.add(first);
  const attempted = first.map((each) => ({ ...each, attempts: 1, dueAt: 5_000 + each.madeAt }));
  for (const each of attempted) outbox.save(each);
  for (let line = 100; line < 110; line++) outbox.add([delivery(line)]);
  expect(outbox.all()).toEqual([
    ...attempted,
    { ...delivery(100), dueAt: attempted.at(-1)?.dueAt, event: { ...delivery(100).event, count: 10 } },
  ]);
});

it('deliveries are due by their rule and time, and given up or forgotten by their age', () => {
  const { outbox } = openStore();
  outbox.add([delivery(1), delivery(2), delivery(3, { rule: 'other', dueAt: 50 })]);
  // Further ahead than any pause: the clock was set back.
  outbox.add([delivery(4, { rule: 'third', dueAt: 11 + HOUR_MS, jobId: null }), delivery(5, { dueAt: 10 + HOUR_MS })]);
  expect(outbox.dueRules(10).toSorted()).toEqual(['rule', 'third']);
  expect(idsOf(outbox.due('rule', 10, 9))).toEqual([1, 2]);
  expect(idsOf(outbox.due('rule', 10, 1))).toEqual([1]);
  expect(outbox.waitingJobs(['rule', 'third'])).toEqual([JOB]);
  expect(outbox.waitingJobs(['third'])).toEqual([]);
  outbox.tryAgain(20);
  expect(outbox.all().map(({ dueAt }) => dueAt)).toEqual([1, 2, 20, 20, 20]);
  outbox.save(delivery(1, { dueAt: null }));
  expect(outbox.counts()).toEqual({ waiting: 4, givenUp: 1, oldestAt: 2 });
  expect(outbox.get(delivery(2))).toMatchObject(delivery(2));
  outbox.remove(delivery(2));
  expect(outbox.get(delivery(2))).toBe(undefined);
  outbox.forgetOthers(['rule', 'other']);
  outbox.forgetGivenUp(1);
  expect(idsOf(outbox.all())).toEqual([1, 3, 5]);
  outbox.forgetGivenUp(2);
  expect(idsOf(outbox.all())).toEqual([3, 5]);
});

it('keys of a job are counted over its whole life, and at most twenty that have ended are kept', () => {
  const { leases } = openStore();
  const login = { protocol: 'SftpScp', host: 'h', basePath: '/s', username: 'u', publicKey: 'key' } as const;
  const ids = Array.from({ length: 30 }, () => leases.ask(JOB, 5));
  const [first = 0, second = 0, third = 0, ...others] = ids;
  expect(leases.countKeys(JOB)).toBe(0);
  leases.open({ ...login, leaseId: first }, 6);
  leases.setWay(first, 'rsync');
  expect(leases.allOpen()).toMatchObject([{ ...login, leaseId: first, way: 'rsync', askedAt: 5, openedAt: 6 }]);
  leases.lose(second, 'no response');
  leases.end(third, 7, 'refused');
  leases.end(third, 8, 'again');
  expect(leases.countKeys(JOB)).toBe(2);
  expect(leases.loseAsked('killed', '7' as JobId)).toEqual([]);
  expect(leases.loseAsked('killed')).toHaveLength(others.length);
  expect(leases.lastOf(JOB)).toMatchObject({ leaseId: others.at(-1), state: 'unknown', reason: 'killed' });
  // Each was asked for at a time of its own.
  expect(leases.lastOf(JOB)?.askedAt).toBe(5 + 29);
  for (const leaseId of others) leases.end(leaseId, 9, null);
  leases.end(first, 9, null);
  const next = leases.ask(JOB, 10);
  expect(leases.lastOf(JOB)?.leaseId).toBe(next);
  expect(leases.countKeys(JOB)).toBe(2);
  for (const leaseId of Array.from({ length: 22 }, () => leases.ask(JOB, 11))) leases.lose(leaseId, 'no response');
  leases.ask(JOB, 12);
  expect(leases.countKeys(JOB)).toBe(20);
});

it('requests of commands are open until they are answered, and forgotten after their commands have ended', () => {
  const { requests } = openStore();
  const kinds = ['sync', 'unwatch', 'forget', 'forget-files', 'report', 'verify', 'verify-complete', 'follow'] as const;
  const [sync = 0, unwatch = 0, ...ids] = kinds.map((kind) => requests.add(kind === 'report' ? null : JOB, kind, 1));
  const openOf = (work: Parameters<typeof requests.open>[0]) => requests.open(work).map(({ kind }) => kind);
  const open = () => (['pass', 'forget', 'service', 'follow'] as const).map((work) => openOf(work).join(' '));
  expect(open()).toEqual(['sync unwatch', 'forget forget-files', 'report verify verify-complete', 'follow']);
  expect(requests.get(sync)).toEqual({ requestId: sync, jobId: JOB, kind: 'sync', madeAt: 1, answer: null });
  const isWorkedOn = (...times: number[]) => times.map((now) => requests.isWorkedOn(JOB, now));
  expect(isWorkedOn(-59_999, -60_000, 60_001, 60_002)).toEqual([true, false, true, false]);
  expect(requests.isWorkedOn('7' as JobId, 1)).toBe(false);
  expect(requests.renew(ids.at(-1) ?? 0, 2)).toBe(true);
  requests.forgetUnrenewed(60_001);
  expect(open()[2]).toBe('report verify verify-complete');
  requests.forgetUnrenewed(60_002);
  expect(open()).toEqual(['sync unwatch', 'forget forget-files', '', 'follow']);
  expect(isWorkedOn(60_002)).toEqual([true]);
  requests.answer(sync, 'done');
  requests.forgetAnswered(1);
  expect(requests.get(sync)).toMatchObject({ answer: 'done' });
  requests.forgetAnswered(2);
  requests.remove(unwatch);
  expect([requests.get(sync), requests.renew(unwatch, 3), open()[0]]).toEqual([undefined, false, '']);
});

it('the rule of a command overrules that of the configuration, and holds places for jobs that are not over', () => {
  const { watchMine, jobs, jobInformation } = openStore();
  const rule = { include: ['a*'], exclude: ['b'], maxAgeMs: 3, maxJobs: 4, since: 5 };
  expect(watchMine.inForce()).toBeUndefined();
  for (const source of ['config', 'command'] as const) watchMine.save({ ...rule, source });
  expect([watchMine.inForce(), watchMine.of('config')]).toEqual([
    { ...rule, source: 'command' },
    { ...rule, source: 'config' },
  ]);
  watchMine.remove('command');
  expect(watchMine.inForce()?.source).toBe('config');
  const mine = ['601', '602', '603', '604'] as JobId[];
  for (const jobId of mine) jobs.watch({ ...REQUEST, jobId, source: 'mine' }, 1);
  const [ending, settled, configuring, running] = mine as [JobId, JobId, JobId, JobId];
  jobs.setState(ending, 'ending');
  jobs.setState(settled, 'settled');
  for (const [jobId, state] of Object.entries({
    [configuring]: 'Configuring',
    [running]: 'Running',
    [settled]: 'Finished',
  })) {
    const information = { state, startTime: { text: 'noon', at: null } } as never;
    jobInformation.save({ jobId: jobId as JobId, information, since: 1, reportedAt: 2 });
  }
  expect(jobs.followedByRule()).toBe(2);
  expect(jobs.settled()).toEqual(new Map([[settled, 'noon']]));
  expect(Object.fromEntries(jobs.states())).toEqual({
    ...{ [JOB]: 'watched', [configuring]: 'watched', [running]: 'watched' },
    ...{ [ending]: 'ending', [settled]: 'settled' },
  });
  expect(jobInformation.states([ending, running])).toEqual(new Map([[running, 'Running']]));
});

it('what is shown of a job, its search, its service and its results', () => {
  const { jobs, jobInformation, taskSearches, results, resultSyncs } = openStore();
  const error = (code: 'unreachable' | 'fault') => ({ code, message: 'no', hint: null, since: 3 });
  const times = [null, error('unreachable'), error('fault')].map((failure) =>
    answeredAt({ polledAt: 5, error: failure }),
  );
  expect([...times, answeredAt({ polledAt: null, error: error('unreachable') })]).toEqual([5, 3, 5, null]);

  expect(jobInformation.lastListing()).toBeUndefined();
  const nothing = { requestedAt: null, nextRequestAt: null, failures: 0, error: null, listed: null };
  expect(shownJobService(undefined)).toEqual(nothing);
  const listing = { requestedAt: 1, nextRequestAt: 2, failures: 3, error: error('fault'), listed: 4 };
  jobInformation.saveListing({ ...listing, waiting: 5 });
  expect(jobInformation.lastListing()).toMatchObject({ ...listing, waiting: 5 });
  expect(shownJobService({ ...listing, waiting: 5 })).toEqual(listing);

  jobs.watch({ ...REQUEST, tasks: null }, 1);
  const search = { ...taskSearches.get(JOB), hint: 'look' } as TaskSearchRow;
  const shown = (found: number, nextSearchAt: number | null, state: WatchState = 'watched') =>
    shownSearch({ ...(jobs.get(JOB) as JobRow), state }, { ...search, nextSearchAt }, found);
  expect([shown(0, null), shown(1, null), shown(1, 9)].map(({ searching }) => searching)).toEqual([true, false, true]);
  expect([shown(0, null), shown(1, 9, 'ended')]).toEqual([
    { found: 0, searching: true, hint: 'look' },
    { found: 1, searching: false, hint: null },
  ]);

  const usual = { ...NEW_RESULT, jobId: JOB, state: 'failed', reason: 'gone', bytes: null } as const;
  const row = (name: string, more: Partial<ResultRow>): ResultRow => ({ ...usual, name, ...more });
  const states = { '/a': 'listed', '/b': 'in-flux', '/c': 'synced', '/d': 'linked' } as const;
  results.saveAll([
    ...Object.entries(states).map(([name, state]) =>
      row(name, { state, reason: null, live: name === '/d' ? 'live' : null }),
    ),
    ...['/f', '/e'].map((name) => row(name, {})),
    row('/g', { state: 'refused', reason: 'unsafe' }),
  ]);
  results.endUnfinished(JOB, 'late');
  expect(results.links(JOB)).toEqual([{ name: '/d', live: 'live' }]);
  const notSynced = results.notSynced(JOB, 9).map(({ name }) => name);
  expect(notSynced.toSorted()).toEqual(['/a', '/b', '/e', '/f', '/g']);
  expect(results.notSynced(JOB, 2)).toHaveLength(2);
  expect(results.reasons(JOB)).toEqual([
    { state: 'failed', reason: 'gone', files: 2, name: '/e' },
    { state: 'failed', reason: 'late', files: 2, name: '/a' },
    { state: 'refused', reason: 'unsafe', files: 1, name: '/g' },
  ]);
  expect(shownSync(resultSyncs.get(JOB))).toBeNull();
  const sync = { startedAt: 1_000, updatedAt: 3_000, endedAt: null, wanted: 2, done: 1, wantedBytes: 9, bytes: 5 };
  const way = { way: null, fallback: null };
  const speeds = [3_000, 1_000].map((updatedAt) => shownSync({ ...sync, ...way, updatedAt, jobId: JOB, arriving: [] }));
  expect(speeds).toEqual([
    { ...sync, ...way, bytesPerSecond: 3 },
    { ...sync, ...way, updatedAt: 1_000, bytesPerSecond: 0 },
  ]);
});

it('an outage is there for other processes until it is over', () => {
  const directory = temporaryDirectory();
  saveOutage(directory, undefined);
  expect(outageIn(directory)).toBeUndefined();
  for (const message of ['connection refused', 'refused']) {
    const outage = { code: 'unreachable', message, hint: null, since: 1 } as const;
    saveOutage(directory, outage);
    expect(outageIn(directory)).toEqual(outage);
  }
  saveOutage(directory, undefined);
  expect(outageIn(directory)).toBeUndefined();
});

it('the list of changed jobs is all of it at the beginning, then what was ordered or changed its state, by whichever process', () => {
  const directory = temporaryDirectory();
  const store = openStore(directory);
  const watch = (by: Store, jobId: string) => by.jobs.watch({ ...REQUEST, jobId: jobId as JobId }, 1);
  const changed = (since: number) => store.jobs.changedSince(since).map(({ jobId }) => jobId);
  const revision = () => Math.max(...store.jobs.changedSince(-1).map((job) => job.revision));
  for (const jobId of ['502', '503']) watch(store, jobId);
  expect(changed(-1).toSorted()).toEqual(['501', '502', '503']);
  const seen = revision();
  // What is only noted of a run is no change.
  store.jobs.endRun(JOB, { polledAt: 2, grownAt: 2, refused: 0, failures: 1, error: null });
  expect(changed(seen)).toEqual([]);

  const command = new Store({ directory, service: 'x', owner: false, now: () => 1 });
  watch(command, '504');
  command.jobs.setState('502' as JobId, 'ending');
  command.close();
  expect(changed(seen).toSorted()).toEqual(['502', '504']);
  const later = revision();
  store.jobs.setState('502' as JobId, 'ending');
  expect(changed(later), 'the same state again is no change').toEqual([]);
  watch(store, '503');
  expect(changed(later), 'an order is').toEqual(['503']);
  const last = revision();
  for (const jobId of changed(-1)) store.transaction(() => store.portableRows.forget(jobId));
  watch(store, '505');
  expect(changed(last), 'also after all jobs were forgotten').toEqual(['505']);
});

it('a job keeps its stall limit when a later command names none', () => {
  const { jobs } = openStore();
  jobs.watch({ ...REQUEST, stallAfterMs: 60_000 }, 1);
  jobs.watch(REQUEST, 2);
  expect(jobs.get(JOB)?.stallAfterMs).toBe(60_000);
});

it('the search for tasks gives found tasks the files that were ordered, and takes nothing away', () => {
  const { jobs, liveFiles, taskSearches } = openStore();
  const watch = (tasks: WatchRequest['tasks'], ...files: LiveFileName[]) => jobs.watch({ ...REQUEST, tasks, files }, 1);
  const find = (...tasks: string[]) => taskSearches.addTasks(taskSearches.get(JOB) as TaskSearchRow, tasks as TaskId[]);
  const files = () => liveFiles.ofJob(JOB).map(({ taskId, file }) => `${taskId} ${file}`);
  watch(null, 'stdout', 'log');
  expect(files()).toEqual(['9001 log', '9001 stdout']);
  find('9001');
  find('9001', '9002');
  expect(files().toSorted()).toEqual(['9001 log', '9001 stdout', '9002 log', '9002 stdout']);
  watch(null, 'stderr');
  find('9003');
  const found = ['9001 log', '9001 stderr', '9001 stdout', '9002 log', '9002 stderr', '9002 stdout', '9003 stderr'];
  expect(files().toSorted()).toEqual(found);
  for (const tasks of [[STDOUT.taskId], []]) {
    watch(tasks, 'stdout');
    expect(taskSearches.get(JOB), 'nothing is searched for once tasks are named').toBeUndefined();
  }
});

it('a settled job is followed again, and no other: what was verified proves nothing about its next end', () => {
  const { jobs, liveFiles } = openStore();
  const [row] = liveFiles.ofJob(JOB) as [LiveFileRow];
  for (const [before, again, after] of [
    ['settled', () => jobs.resume(JOB), 'watched'],
    ['ended', () => jobs.resume(JOB), 'ended'],
    ['ending', () => jobs.resume(JOB), 'ending'],
    ['settled', () => jobs.watch(REQUEST, 1), 'watched'],
  ] as const) {
    jobs.setState(JOB, before);
    liveFiles.setComparison(row, { verified: 0, unverified: 'no', early: false });
    expect(liveFiles.ofJob(JOB)).toEqual([{ ...row, verified: 0, unverified: 'no', early: false }]);
    again();
    expect(jobs.get(JOB)?.state).toBe(after);
    expect(liveFiles.ofJob(JOB)).toMatchObject([{ early: true }]);
  }
});
