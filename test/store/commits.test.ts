/** Commits that are gathered: one transaction for many, in their order, all or none. */
import { expect, it } from 'vitest';
import { Commits } from '../../src/store/store.ts';
import { HeldClock } from '../support/held-clock.ts';

function setUp() {
  const clock = new HeldClock();
  const transactions: string[][] = [];
  const failures: Error[] = [];
  const transaction = (work: () => void) => {
    transactions.push([]);
    work();
    if (failures[0] !== undefined) throw failures[0];
  };
  const commits = new Commits({ transaction, timer: clock.timer });
  const add = (name: string, withinMs?: number) => commits.commit(() => transactions.at(-1)?.push(name), withinMs);
  return { clock, transactions, failures, commits, add };
}

it('the store makes one transaction of what comes within a short time, in its order, and of what may wait', async () => {
  const { clock, transactions, add } = setUp();
  const all = [add('lazy', 1_000)];
  await clock.pass(900);
  all.push(add('a'), add('b'), add('late', 1_000));
  await clock.pass(4);
  expect(transactions).toEqual([]);
  await clock.pass(1);
  await Promise.all(all);
  const next = add('c', 1_000);
  await clock.pass(999);
  expect(transactions).toEqual([['lazy', 'a', 'b', 'late']]);
  await clock.pass(1);
  await next;
  expect(transactions).toEqual([['lazy', 'a', 'b', 'late'], ['c']]);
});

it('rejects all writes of a transaction that failed, and continues with the next one', async () => {
  const { clock, failures, add } = setUp();
  failures.push(new Error('no room'));
  const all = Promise.allSettled([add('a'), add('b')]);
  await clock.pass(5);
  expect((await all).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  failures.length = 0;
  const next = add('c');
  await clock.pass(5);
  await next;
});

it('commits at once when asked to, and nothing twice', async () => {
  const { clock, transactions, commits, add } = setUp();
  const one = add('a', 1_000);
  commits.flush();
  await one;
  commits.flush();
  expect([transactions, clock.timers]).toEqual([[['a']], 0]);
  const next = add('b', 1_000);
  await clock.pass(1_000);
  await next;
  expect(transactions).toEqual([['a'], ['b']]);
});
