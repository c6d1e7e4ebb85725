/** The place of a poll among the calls: it is taken before anything is opened, used by its first call, and given back. */
import { setMaxListeners } from 'node:events';
import { expect, it, onTestFinished, vi } from 'vitest';
import { CallSlot, Calls } from '../../src/agent/calls.ts';

const { signal } = new AbortController();
// Every call that waits listens to it.
setMaxListeners(0, signal);
const limits = { concurrency: 1, requestsPerMinute: 100_000 };

it('has its first call in the place that was taken, and waits with the next one', async () => {
  const calls = new Calls(limits);
  const slot = new CallSlot(calls, 'live', signal);
  await slot.take();
  const said: string[] = [];
  const other = calls.run('live', signal, async () => void said.push('other'));
  await slot.run('begun', signal, async () => void said.push('first'));
  const second = slot.run('begun', signal, async () => void said.push('second'));
  await Promise.all([other, second]);
  expect(said[0]).toBe('first');
  expect(said.toSorted()).toEqual(['first', 'other', 'second']);
});

it('lets what has begun go before what has not', async () => {
  const calls = new Calls(limits);
  const said: string[] = [];
  const [first, begun] = [new CallSlot(calls, 'live', signal), new CallSlot(calls, 'live', signal)];
  await first.take();
  const waiting = ['a', 'b'].map((name) => calls.run('live', signal, async () => void said.push(name)));
  const next = begun.run('begun', signal, async () => void said.push('begun'));
  first.end();
  await Promise.all([...waiting, next]);
  expect(said).toEqual(['begun', 'a', 'b']);
});

it('comes to patient calls, too, while more polls wait than there is room for', async () => {
  const calls = new Calls(limits);
  const said: string[] = [];
  const first = new CallSlot(calls, 'live', signal);
  await first.take();
  const call = (lane: 'live' | 'patient') => calls.run(lane, signal, async () => void said.push(lane));
  const all = [call('patient'), call('patient'), ...Array.from({ length: 20 }, () => call('live'))];
  first.end();
  await Promise.all(all);
  expect(said.indexOf('patient')).toBeGreaterThan(2);
  expect(said.lastIndexOf('patient')).toBeLessThan(14);
});

it('comes to a live call when a patient one that waited before it is stopped in the same moment', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const calls = new Calls({ concurrency: 10, requestsPerMinute: 600 });
  const call = () => calls.run('live', signal, async () => {});
  await Promise.all(Array.from({ length: 10 }, call));
  const stop = new AbortController();
  const patient = calls.run('patient', stop.signal, async () => {});
  const live = call();
  await Promise.resolve();
  // There is a place again, though the queue's timer did not go off yet: the stop makes the queue look for a call.
  vi.setSystemTime(Date.now() + 1_050);
  stop.abort();
  await expect(patient).rejects.toMatchObject({ code: 'aborted' });
  await expect(live).resolves.toBeUndefined();
});

it('gives a place back that no call needed', async () => {
  const calls = new Calls(limits);
  const slot = new CallSlot(calls, 'live', signal);
  await slot.take();
  slot.end();
  slot.end();
  expect(await calls.run('live', signal, async () => 'went')).toBe('went');
});

it('is taken back when the agent stops', async () => {
  const calls = new Calls(limits);
  const [held, stop] = [new CallSlot(calls, 'live', signal), new AbortController()];
  await held.take();
  const waiting = new CallSlot(calls, 'live', stop.signal).take();
  stop.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
  held.end();
});
