/** What the rows of a job are for after it: notifications that wait, keys that were made, and the id of a removed job. */
import { expect, it, onTestFinished } from 'vitest';
import type { JobId, TaskId } from '../../src/job.ts';
import { newEvent } from '../../src/notify/events.ts';
import { outageIn, saveOutage } from '../../src/store/outage.ts';
import { type DeliveryRow, MAX_WAITING } from '../../src/store/outbox.ts';
import type { WatchRequest } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
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
  expect(outbox.has(delivery(2))).toBe(true);
  outbox.remove(delivery(2));
  expect(outbox.has(delivery(2))).toBe(false);
  expect(outbox.forget(1, ['rule', 'other'])).toBe(1);
  expect(outbox.forget(2, ['rule', 'other'])).toBe(1);
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
});

it('an outage is there for other processes until it is over', () => {
  const directory = temporaryDirectory();
  saveOutage(directory, undefined);
  expect(outageIn(directory)).toBeUndefined();
  const outage = { code: 'unreachable', message: 'refused', hint: null, since: 1 } as const;
  saveOutage(directory, outage);
  expect(outageIn(directory)).toEqual(outage);
  saveOutage(directory, undefined);
  expect(outageIn(directory)).toBeUndefined();
});
