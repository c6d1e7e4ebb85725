/** A signal of one piece of work under a long-lived one. */
import { getEventListeners, once } from 'node:events';
import { expect, it } from 'vitest';
import { LinkedAbort } from '../src/linked-abort.ts';

it('a linked signal fires with the signal of the caller, for its reason, before or after it was made', () => {
  const caller = new AbortController();
  const early = new LinkedAbort(caller.signal);
  caller.abort('the end');
  for (const { signal } of [early, new LinkedAbort(caller.signal)]) {
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBe('the end');
  }
});

it('a linked signal fires for a reason of its own, if one is wanted', () => {
  const caller = new AbortController();
  const link = new LinkedAbort(caller.signal, (reason) => `because of ${reason}`);
  caller.abort('the end');
  expect(link.signal.reason).toBe('because of the end');
});

it('a linked signal fires alone, and leaves nothing with the caller', () => {
  const { signal } = new AbortController();
  const link = new LinkedAbort(signal);
  link.abort();
  expect([link.signal.aborted, signal.aborted]).toEqual([true, false]);
  link.release();
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

it('a linked signal fires after its limit, unless it is released before', async () => {
  const { signal } = new AbortController();
  const [limited, released] = [new LinkedAbort(signal).within(1), new LinkedAbort(signal).within(1)];
  released.release();
  await once(limited.signal, 'abort');
  expect(released.signal.aborted).toBe(false);
});
