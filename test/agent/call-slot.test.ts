/** The place of a poll among the calls: it is taken before anything is opened, used by its first call, and given back. */
import { getEventListeners, setMaxListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { CallSlot, Calls, Entrance, MAX_QUEUED_POLLS } from '../../src/agent/calls.ts';
import { ServerShare } from '../../src/agent/server-share.ts';
import { HeldClock } from '../support/held-clock.ts';

const { signal } = new AbortController();
// Every call that waits listens to it.
setMaxListeners(0, signal);
const share = new ServerShare({ requestsPerMinute: null, monotonic: () => performance.now() });
const limits = { concurrency: 1, share };

it('a slot for calls has its first call in the place that was taken, and waits with the next one', async () => {
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

it('a slot for calls lets what has begun go before what has not', async () => {
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

it('a slot for calls comes to patient calls, too, while more polls wait than there is room for', async () => {
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
  expect(calls.waiting).toBe(0);
});

it('a slot for calls comes to a live call when a patient one that waited before it is stopped in the same moment', async () => {
  const clock = new HeldClock();
  const { monotonic } = clock;
  const limited = new ServerShare({ requestsPerMinute: 600, monotonic });
  const calls = new Calls({ concurrency: 10, share: limited, clock });
  await calls.run('live', signal, async () => {});
  const stop = new AbortController();
  const patient = calls.run('patient', stop.signal, async () => {});
  const live = calls.run('live', signal, async () => {});
  stop.abort();
  await expect(patient).rejects.toMatchObject({ code: 'aborted' });
  await clock.passWhile(live);
});

it('a slot for calls gives a place back that no call needed', async () => {
  const calls = new Calls(limits);
  const slot = new CallSlot(calls, 'live', signal);
  await slot.take();
  slot.end();
  slot.end();
  for (const _ of [1, 2]) await slot.take();
  let went = false;
  const other = calls.run('live', signal, async () => {
    went = true;
  });
  await setImmediate();
  expect(went).toBe(false);
  slot.end();
  await other;
});

it('a slot for calls is taken back when the agent stops', async () => {
  const calls = new Calls(limits);
  const [held, stop] = [new CallSlot(calls, 'live', signal), new AbortController()];
  await held.take();
  const waiting = new CallSlot(calls, 'live', stop.signal).take();
  stop.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
  held.end();
});

it('a slot for calls is taken by long calls, too, but for one', async () => {
  const clock = new HeldClock();
  const limited = new ServerShare({ requestsPerMinute: null, monotonic: clock.monotonic });
  const calls = new Calls({ concurrency: 8, share: limited, clock });
  expect(await atATime(calls, clock)).toBe(8);
  expect(await atATime(calls, clock, 'patient')).toBe(7);
  const stop = new AbortController();
  const downloads = Array.from({ length: 9 }, () => calls.slot('patient', stop.signal));
  const held = await Promise.all(downloads.slice(0, 7));
  await calls.run('live', signal, async () => undefined);
  stop.abort();
  for (const endSlot of held) endSlot();
  for (const download of downloads.slice(7)) await expect(download).rejects.toMatchObject({ code: 'aborted' });
});

it.each([1, 3])('calls of each of %i agents begin no faster than the share allows, in both queues', async (sharers) => {
  const clock = new HeldClock();
  let called = 0;
  const calls = new Calls({
    concurrency: 4,
    share: new ServerShare({ requestsPerMinute: 60, monotonic: clock.monotonic }),
    clock,
    shared: { sharers, called: () => (called += 1) },
  });
  const begunAt: number[] = [];
  const lanes = ['live', 'patient', 'raw', 'live', 'patient', 'wanted', 'live', 'patient'] as const;
  const all = lanes.map((lane) => calls.run(lane, signal, async () => void begunAt.push(clock.monotonic())));
  await clock.passWhile(Promise.all(all));
  expect(begunAt.map((at) => Math.round(at / 1_000))).toEqual(lanes.map((_, index) => sharers * index));
  expect(called).toBe(lanes.length);
});

it('a long call that is stopped before its turn gives its place to another long one', async () => {
  const clock = new HeldClock();
  const limited = new ServerShare({ requestsPerMinute: 60, monotonic: clock.monotonic });
  const calls = new Calls({ concurrency: 2, share: limited, clock });
  await calls.run('live', signal, async () => {});
  const stop = new AbortController();
  const stopped = calls.run('patient', stop.signal, async () => {});
  await clock.pass(100);
  stop.abort();
  await expect(stopped).rejects.toMatchObject({ code: 'aborted' });
  const served = Promise.all([1, 2].map(() => calls.run('patient', signal, async () => {})));
  await clock.pass(10_000);
  expect(calls.waiting).toBe(0);
  await served;
});

/** How many of forty calls run at a time. */
async function atATime(calls: Calls, clock: HeldClock, lane: 'live' | 'patient' = 'live'): Promise<number> {
  let running = 0;
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const held = Array.from({ length: 40 }, () =>
    calls.run(lane, signal, async () => {
      running += 1;
      await ended;
    }),
  );
  await clock.pass(60_000);
  const most = running;
  end();
  await clock.passWhile(Promise.all(held));
  return most;
}

it('polls wait before the queue while it is full; a stopped one does not, and gives no place to others', async () => {
  const entrance = new Entrance();
  const entered: number[] = [];
  const jobs = Array.from({ length: MAX_QUEUED_POLLS + 3 }, () => new AbortController());
  const all = jobs.map(async (job, index) => {
    const leave = await entrance.enter(job.signal);
    entered.push(index);
    return leave;
  });
  expect(entrance.waiting).toBe(3);
  jobs[MAX_QUEUED_POLLS + 1]?.abort();
  const leave = await all[0];
  leave?.();
  leave?.();
  expect(entrance.waiting).toBe(2);
  for (const begun of all.slice(1, 3)) (await begun)();
  await Promise.all(all);
  expect(entered.slice(MAX_QUEUED_POLLS)).toEqual([1, 0, 2].map((index) => MAX_QUEUED_POLLS + index));
  // A stop of one that was let in counts it no second time.
  for (const job of jobs) expect(getEventListeners(job.signal, 'abort')).toEqual([]);
});

const LANES = ['asked', 'begun', 'live', 'raw', 'wanted', 'ending', 'patient'] as const;
const CALL_MS = 100;
const MAX_CALLS_BEFORE = 60;

it.each(LANES)('a call of lane %s begins while calls of every other lane never cease to wait', async (lane) => {
  const clock = new HeldClock();
  const quick = new ServerShare({ requestsPerMinute: 1_000_000, monotonic: clock.monotonic });
  const calls = new Calls({ concurrency: 1, share: quick, clock });
  let begun = 0;
  let isServed = false;
  const others = LANES.filter((other) => other !== lane);
  const keepUp = async (other: (typeof LANES)[number]) => {
    while (!isServed && begun < 10 * MAX_CALLS_BEFORE)
      await calls.run(other, signal, async () => {
        begun += 1;
        await new Promise<void>((ended) => clock.timer(CALL_MS, ended));
      });
  };
  const busy = others.flatMap((other) => [keepUp(other), keepUp(other), keepUp(other)]);
  await clock.pass(10 * CALL_MS);
  const before = begun;
  let after = Number.POSITIVE_INFINITY;
  const waiting = calls.run(lane, signal, async () => {
    isServed = true;
    after = begun - before;
  });
  await clock.passWhile(Promise.all([waiting, ...busy]));
  expect(after).toBeLessThanOrEqual(MAX_CALLS_BEFORE);
});

it('while calls of all lanes wait, each lane gets its share of them', async () => {
  const clock = new HeldClock();
  const stop = new AbortController();
  const quick = new ServerShare({ requestsPerMinute: 1_000_000, monotonic: clock.monotonic });
  const calls = new Calls({ concurrency: 1, share: quick, clock });
  const begun: Record<string, number> = Object.fromEntries(LANES.map((lane) => [lane, 0]));
  const keepUp = async (lane: (typeof LANES)[number]) => {
    while (!stop.signal.aborted)
      await calls.run(lane, stop.signal, async () => {
        begun[lane] = (begun[lane] ?? 0) + 1;
        await new Promise<void>((ended) => clock.timer(CALL_MS, ended));
      });
  };
  const busy = LANES.flatMap((lane) => Array.from({ length: 5 }, () => keepUp(lane)));
  const ROUNDS = 10;
  await clock.pass(ROUNDS * 37 * CALL_MS);
  const shares = { asked: 16, begun: 8, live: 4, raw: 4, wanted: 2, ending: 2, patient: 1 };
  for (const [lane, inRound] of Object.entries(shares)) expect(begun[lane], lane).toBeCloseTo(ROUNDS * inRound, -1);
  stop.abort();
  await clock.passWhile(Promise.allSettled(busy));
});
