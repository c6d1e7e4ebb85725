/** Attempts while a server does not answer, in a time that the test sets. */
import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SPACING_MS, Spacing } from '../../../src/remote/http/spacing.ts';

/** Each attempt has its own, as in the client. */
const newSignal = () => new AbortController().signal;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function attempts(spacing: Spacing, count: number) {
  const begun = { count: 0 };
  for (let made = 0; made < count; made += 1) void spacing.turn(newSignal()).then(() => (begun.count += 1));
  return begun;
}

const newSpacing = () => new Spacing(() => Date.now());

it('many attempts at a server that has not answered yet begin one after the other', async () => {
  const begun = attempts(newSpacing(), 10);
  await vi.advanceTimersByTimeAsync(0);
  expect(begun.count).toBe(1);
  await vi.advanceTimersByTimeAsync(3 * SPACING_MS);
  expect(begun.count).toBe(4);
});

it('the first answer lets all of them begin, and those after it', async () => {
  const spacing = newSpacing();
  const begun = attempts(spacing, 10);
  await vi.advanceTimersByTimeAsync(0);
  spacing.responded();
  const next = attempts(spacing, 5);
  await vi.advanceTimersByTimeAsync(0);
  expect([begun.count, next.count]).toEqual([10, 5]);
});

it('a failed attempt delays the next one; a broken open connection delays only the one after that', async () => {
  const spacing = newSpacing();
  spacing.responded();
  spacing.doubted();
  const afterDoubt = attempts(spacing, 2);
  await vi.advanceTimersByTimeAsync(SPACING_MS - 1);
  expect(afterDoubt.count).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  spacing.failed();
  const afterFailure = attempts(spacing, 1);
  await vi.advanceTimersByTimeAsync(SPACING_MS - 1);
  expect([afterDoubt.count, afterFailure.count]).toEqual([2, 0]);
  await vi.advanceTimersByTimeAsync(1);
  expect(afterFailure.count).toBe(1);
  // A failure is a doubt as well.
  spacing.responded();
  spacing.failed();
  const afterResponse = attempts(spacing, 1);
  await vi.advanceTimersByTimeAsync(SPACING_MS - 1);
  expect(afterResponse.count).toBe(0);
});

it('an attempt that waits for its turn is stopped at once', async () => {
  const spacing = newSpacing();
  await spacing.turn(newSignal());
  const stop = new AbortController();
  const waiting = expect(spacing.turn(stop.signal)).rejects.toThrow('stopped');
  stop.abort(new Error('stopped'));
  await waiting;
  expect(vi.getTimerCount()).toBe(0);
  const { signal } = new AbortController();
  const next = spacing.turn(signal);
  await vi.advanceTimersByTimeAsync(SPACING_MS);
  await next;
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
