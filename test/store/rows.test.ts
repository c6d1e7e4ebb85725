/** What the rows of a job are for after it: notifications that wait, keys that were made, and the id of a removed job. */
import { expect, it, onTestFinished } from 'vitest';
import type { JobId, TaskId } from '../../src/job.ts';
import { newEvent } from '../../src/notify/events.ts';
import { answeredAt, shownJobService, shownSearch } from '../../src/store/jobs.ts';
import { outageIn, saveOutage } from '../../src/store/outage.ts';
import { type DeliveryRow, MAX_WAITING } from '../../src/store/outbox.ts';
import { shownSync } from '../../src/store/results.ts';
import type { JobRow, ResultRow, TaskSearchRow, WatchRequest, WatchState } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { NEW_RESULT } from '../support/live-place.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const JOB = '501' as JobId;
const HOUR_MS = 3_600_000;
const STDOUT = { taskId: '9001' as TaskId, file: 'stdout' } as const;
const REQUEST: WatchRequest = {
  ...{ jobId: JOB, tasks: [STDOUT.taskId], files: ['stdout'], results: false, settleAfterMs: null, source: 'command' },
};

function openStore(): Store {
  const store = new Store({ directory: temporaryDirectory(), service: 'x', owner: true, now: () => 1 });
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
  outbox.jobs.save({
    jobId: JOB,
    jobState: null,
    startedAt: null,
    watchState: 'watched',
    stalledAt: null,
    hasFiles: true,
  });
  const [row] = liveFiles.ofJob(JOB);
  if (row === undefined) throw new Error('it was just watched');
  const after = (generation: number, position: number) => {
    liveFiles.save({ ...row, generation, position });
    const unread = outbox.unreadFiles().length;
    outbox.skip({ ...row, generation, position });
    const { lines } = outbox.position(JOB, row) ?? {};
    return [unread, outbox.unreadFiles().length, lines];
  };
  expect(after(1, 0)).toEqual([0, 0, undefined]);
  expect(after(1, 1)).toEqual([1, 0, null]);
  expect(after(2, 0)).toEqual([1, 0, 0]);
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
  outbox.add([
    delivery(4, { rule: 'third', dueAt: 10 + HOUR_MS + 1, jobId: null }),
    delivery(5, { dueAt: 10 + HOUR_MS }),
  ]);
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

it('a live file that is not read for notifications yet begins where it stands', () => {
  const { liveFiles, outbox } = openStore();
  const row = liveFiles.ofJob(JOB)[0];
  if (row === undefined) throw new Error('it was just watched');
  const skipped = [
    [1, 0],
    [2, 0],
    [2, 5],
  ].map(([generation = 0, position = 0]) => {
    outbox.skip({ ...row, generation, position });
    return outbox.position(JOB, STDOUT);
  });
  const at = { jobId: JOB, ...STDOUT, generation: 2 };
  expect(skipped).toEqual([undefined, { ...at, position: 0, lines: 0 }, { ...at, position: 5, lines: null }]);
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
  const open = () =>
    (['pass', 'forget', 'service', 'follow'] as const).map((work) =>
      requests
        .open(work)
        .map(({ kind }) => kind)
        .join(' '),
    );
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
  for (const [jobId, state, text] of [
    [configuring, 'Configuring', 'x'],
    [running, 'Running', 'x'],
    [settled, 'Finished', 'noon'],
  ] as const) {
    const information = { state, startTime: { text, at: null } };
    jobInformation.save({ jobId, information: information as never, since: 1, reportedAt: 2 });
  }
  expect(jobs.followedByRule()).toBe(2);
  expect(jobs.settled()).toEqual(new Map([[settled, 'noon']]));
  expect(jobs.states()).toEqual(
    new Map([
      [JOB, 'watched'],
      [ending, 'ending'],
      [settled, 'settled'],
      [configuring, 'watched'],
      [running, 'watched'],
    ]),
  );
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
  expect(
    results
      .notSynced(JOB, 9)
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(['/a', '/b', '/e', '/f', '/g']);
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
