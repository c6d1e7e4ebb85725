/** The place of a poll among the calls: it is taken before anything is opened, used by its first call, and given back. */
import { getEventListeners, setMaxListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { CallSlot, Calls, Entrance, MAX_QUEUED_POLLS, type SharedService } from '../../src/agent/calls.ts';
import { ServerShare } from '../../src/agent/server-share.ts';
import { HeldClock } from '../support/held-clock.ts';

const { signal } = new AbortController();
// Every call that waits listens to it.
setMaxListeners(0, signal);

/** Calls by a clock that the test holds. */
function heldCalls(concurrency = 1, requestsPerMinute: number | null = null, shared?: SharedService) {
  const clock = new HeldClock();
  const share = new ServerShare({ requestsPerMinute, monotonic: clock.monotonic });
  return { clock, calls: new Calls({ concurrency, share, clock, shared }) };
}

it('a slot for calls has its first call in the place that was taken, and waits with the next one', async () => {
  const { calls } = heldCalls();
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

it('a slot for calls comes to a live call when a patient one that waited before it is stopped in the same moment', async () => {
  const { clock, calls } = heldCalls(10, 600);
  await calls.run('live', signal, async () => {});
  const stop = new AbortController();
  const patient = calls.run('patient', stop.signal, async () => {});
  const live = calls.run('live', signal, async () => {});
  stop.abort();
  await expect(patient).rejects.toMatchObject({ code: 'aborted' });
  await clock.passWhile(live);
});

it('a slot for calls that is stopped as the last one that waits leaves no timer', async () => {
  const { clock, calls } = heldCalls(10, 600);
  await calls.run('live', signal, async () => {});
  const stop = new AbortController();
  const waiting = calls.slot('live', stop.signal);
  expect(clock.timers).toBe(1);
  stop.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
  expect(clock.timers).toBe(0);
});

it('a slot for calls gives a place back that no call needed', async () => {
  const { calls } = heldCalls();
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
  const { calls } = heldCalls();
  const [held, stop] = [new CallSlot(calls, 'live', signal), new AbortController()];
  await held.take();
  const waiting = new CallSlot(calls, 'live', stop.signal).take();
  stop.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
  held.end();
});

it('a slot for calls is taken by long calls, too, but for one', async () => {
  const { clock, calls } = heldCalls(8);
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
  let called = 0;
  const { clock, calls } = heldCalls(4, 60, { sharers, called: () => (called += 1) });
  const begunAt: number[] = [];
  const lanes = ['live', 'patient', 'raw', 'live', 'patient', 'wanted', 'live', 'patient'] as const;
  const all = lanes.map((lane) => calls.run(lane, signal, async () => void begunAt.push(clock.monotonic())));
  await clock.passWhile(Promise.all(all));
  expect(begunAt.map((at) => Math.round(at / 1_000))).toEqual(lanes.map((_, index) => sharers * index));
  expect(called).toBe(lanes.length);
});

it('a long call that is stopped before its turn gives its place to another long one', async () => {
  const { clock, calls } = heldCalls(2, 60);
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
  const ended = new Promise<void>((resolve) => (end = resolve));
  const call = async () => {
    running += 1;
    await ended;
  };
  const held = Array.from({ length: 40 }, () => calls.run(lane, signal, call));
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

it('while calls of all lanes wait, each lane gets its share of them', async () => {
  const { clock, calls } = heldCalls(1, 1_000_000);
  const stop = new AbortController();
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
