/** The thread that tests lines: what an expression costs, the agent does not pay. */
import { expect, it, onTestFinished } from 'vitest';
import { MatchThread } from '../../../src/notify/match-thread.ts';

function matchThread(): MatchThread {
  const thread = new MatchThread();
  onTestFinished(() => thread.close());
  return thread;
}

it('the thread of notifications finds the matching lines of each rule', async () => {
  const { matches } = matchThread();
  expect(await matches('ERR', ['ERROR', 'fine', 'an ERR'])).toEqual([0, 2]);
  expect(await matches('fine$', ['ERROR', 'fine'])).toEqual([1]);
});

it('an expression that never ends is given up, and the next one is tested', async () => {
  const { matches } = matchThread();
  expect(await matches('^(a+)+$', [`${'a'.repeat(60)}b`])).toBeUndefined();
  expect(await matches('b$', ['b'])).toEqual([0]);
});

it('the agent goes on while slow expressions are tested', async () => {
  const { matches } = matchThread();
  await matches('x', ['x']);
  let [turns, isOver] = [0, false];
  const count = () => {
    turns += 1;
    if (!isOver) setTimeout(count, 1);
  };
  count();
  const lines = Array.from({ length: 64 }, () => 'residual '.repeat(455));
  for (let rule = 0; rule < 4; rule++) expect(await matches(`residual.*diverged${rule}`, lines)).toEqual([]);
  isOver = true;
  expect(turns).toBeGreaterThan(10);
});

it('all rules together have a budget of a minute', async () => {
  const { matches } = matchThread();
  for (let each = 0; each < 4; each++) await matches('^(a+)+$', [`${'a'.repeat(60)}b`]);
  expect(await matches('b$', ['b'])).toBeUndefined();
});
