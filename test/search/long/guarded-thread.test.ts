/** The thread that tests lines: what an expression costs, the agent does not pay. */
import { expect, it, onTestFinished } from 'vitest';
import { expressionThread, matchingIn } from '../../../src/search/guarded-thread.ts';

function newThread() {
  const thread = expressionThread();
  onTestFinished(() => thread.close());
  return { matching: (source: string, texts: readonly string[]) => matchingIn(thread, source, texts) };
}

it('a thread finds the texts that match each expression', async () => {
  const thread = newThread();
  expect(await thread.matching('ERR', ['ERROR', 'fine', 'an ERR'])).toEqual([0, 2]);
  expect(await thread.matching('fine$', ['ERROR', 'fine'])).toEqual([1]);
});

it('an expression that never ends is given up, and the next one is tested', async () => {
  const thread = newThread();
  expect(await thread.matching('^(a+)+$', [`${'a'.repeat(60)}b`])).toBeUndefined();
  expect(await thread.matching('b$', ['b'])).toEqual([0]);
});

it('the program goes on while a thread tests slow expressions', async () => {
  const thread = newThread();
  await thread.matching('x', ['x']);
  let [turns, isOver] = [0, false];
  const count = () => {
    turns += 1;
    if (!isOver) setTimeout(count, 1);
  };
  count();
  const lines = Array.from({ length: 64 }, () => 'residual '.repeat(455));
  for (let rule = 0; rule < 4; rule++) expect(await thread.matching(`residual.*diverged${rule}`, lines)).toEqual([]);
  isOver = true;
  expect(turns).toBeGreaterThan(10);
});
