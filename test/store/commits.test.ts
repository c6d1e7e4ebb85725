/** Commits that are gathered: one transaction for many, in their order, all or none. */
import { expect, it } from 'vitest';
import { Commits } from '../../src/store/store.ts';

/** A clock that the test advances, and transactions that are written down. */
function setUp() {
  const transactions: string[][] = [];
  let current: string[] = [];
  let failure: Error | undefined;
  let timer: { readonly dueMs: number; readonly callback: () => void } | undefined;
  const commits = new Commits({
    transaction: (work) => {
      current = [];
      work();
      if (failure !== undefined) throw failure;
      transactions.push(current);
    },
    timer: (dueMs, callback) => {
      timer = { dueMs, callback };
      return () => {
        timer = undefined;
      };
    },
  });
  return {
    commits,
    transactions,
    add: (name: string, withinMs?: number) => commits.commit(() => void current.push(name), withinMs),
    fail: (error: Error) => {
      failure = error;
    },
    dueMs: () => timer?.dueMs,
    pass: () => timer?.callback(),
  };
}

it('the store makes one transaction of what comes within a short time, in its order', async () => {
  const { add, pass, transactions } = setUp();
  const all = [add('a'), add('b'), add('c')];
  expect(transactions).toEqual([]);
  pass();
  await Promise.all(all);
  expect(transactions).toEqual([['a', 'b', 'c']]);
});

it('the store takes what may wait along with what is waited for', async () => {
  const { add, pass, dueMs, transactions } = setUp();
  const lazy = add('lazy', 1_000);
  expect(dueMs()).toBe(1_000);
  const waited = add('waited');
  expect(dueMs()).toBeLessThan(1_000);
  void add('late', 1_000);
  expect(dueMs()).toBeLessThan(1_000);
  pass();
  await Promise.all([lazy, waited]);
  expect(transactions).toEqual([['lazy', 'waited', 'late']]);
});

it('rejects all writes of a transaction that failed, and continues with the next one', async () => {
  const { add, pass, fail, transactions } = setUp();
  const all = [add('a'), add('b')];
  fail(new Error('no room'));
  pass();
  for (const one of all) await expect(one).rejects.toThrow('no room');
  expect(transactions).toEqual([]);
});

it('commits at once when asked to, and nothing twice', async () => {
  const { commits, add, dueMs, transactions } = setUp();
  const one = add('a', 1_000);
  commits.flush();
  await one;
  commits.flush();
  expect(transactions).toEqual([['a']]);
  expect(dueMs()).toBeUndefined();
  void add('b', 1_000);
  expect(dueMs()).toBe(1_000);
});
