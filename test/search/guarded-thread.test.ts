/** The thread that tests lines: what an expression costs, the agent does not pay. */
import { Worker } from 'node:worker_threads';
import { expect, it, onTestFinished, vi } from 'vitest';
import { expressionThread, matchingIn } from '../../src/search/guarded-thread.ts';

function newThread() {
  const thread = expressionThread();
  onTestFinished(() => thread.close());
  return { thread, matching: (source: string, texts: readonly string[]) => matchingIn(thread, source, texts) };
}

it('a thread finds the texts that match each expression, and where', async () => {
  const { thread, matching } = newThread();
  const works = [matching('ERR', ['ERROR', 'fine', 'an ERR']), matching('fine$', ['ERROR', 'fine'])];
  expect(await Promise.all(works)).toEqual([[0, 2], [1]]);
  const texts = ['ab ab', 'Abb', ''];
  expect(await thread.ask({ source: 'ab+', flags: 'gi', texts, from: [1, 0, 0] })).toEqual([[3, 2], [0, 3], []]);
  expect(await thread.ask({ source: 'ab+', flags: 'g', texts, from: [0] })).toEqual([[0, 2, 3, 2], [], []]);
});

it('an expression that never ends is given up after half a minute, and the next one is tested', async () => {
  const { thread, matching } = newThread();
  const terminate = vi.spyOn(Worker.prototype, 'terminate');
  onTestFinished(() => terminate.mockRestore());
  expect(await matching('x', ['x'])).toEqual([0]);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const answers: unknown[] = [];
  const asked = [matching('^(a+)+$', [`${'a'.repeat(60)}b`]), matching('b$', ['b'])];
  for (const answer of asked) void answer.then((found) => answers.push(found));
  // The process has little of the processor meanwhile, so it is given its time five times again.
  await vi.advanceTimersByTimeAsync(29_999);
  expect(answers).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(answers).toEqual([undefined, undefined]);
  expect(terminate).toHaveBeenCalledOnce();
  expect(await matching('b$', ['b'])).toEqual([0]);
  expect(vi.getTimerCount()).toBe(0);
  const last = matching('b$', ['b']);
  await thread.close();
  expect(terminate.mock.settledResults.at(-1)?.type).toBe('fulfilled');
  expect(await last).toBeUndefined();
  expect(vi.getTimerCount()).toBe(0);
  // A process that has the processor for itself gives it up after one time of half its own.
  const used = vi.spyOn(process, 'cpuUsage').mockReturnValueOnce({ user: 1_000, system: 0 });
  onTestFinished(() => used.mockRestore());
  used.mockReturnValueOnce({ user: 1_000, system: 2_499_000 }).mockReturnValueOnce({ user: 2_501_000, system: 0 });
  const ofOne = matching('^(a+)+$', [`${'a'.repeat(60)}b`]);
  await vi.advanceTimersByTimeAsync(9_999);
  expect(terminate).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(await ofOne).toBeUndefined();
  // Too much memory ends it before its time.
  expect(await thread.ask({ source: '', flags: 'g', texts: ['x'.repeat(3_000_000)], from: [0] })).toBeUndefined();
  expect(vi.getTimerCount()).toBe(0);
});
