/** What feeds the watchdog comes out of the scheduler's own loop, so that it ends when the loop does. */
import { describe, expect, it, vi } from 'vitest';
import { Calls } from '../../src/agent/calls.ts';
import { Scheduler } from '../../src/agent/schedule/scheduler.ts';
import { ServerShare } from '../../src/agent/server-share.ts';
import type { Clock } from '../../src/system/clock.ts';

/** A clock that a test moves; its timers are called when it is moved past them, unless they are lost. */
class HeldClock implements Clock {
  timersAreLost = false;
  #now = 0;
  #timers = new Map<number, { readonly dueAt: number; readonly callback: () => void }>();
  #next = 0;

  now = () => this.#now;
  monotonic = () => this.#now;

  timer(delayMs: number, callback: () => void): () => void {
    const id = this.#next++;
    this.#timers.set(id, { dueAt: this.#now + delayMs, callback });
    return () => this.#timers.delete(id);
  }

  advance(ms: number): void {
    for (const end = this.#now + ms; this.#now < end; this.#now++) {
      for (const [id, { dueAt, callback }] of [...this.#timers]) {
        if (dueAt > this.#now || this.timersAreLost) continue;
        this.#timers.delete(id);
        callback();
      }
    }
  }
}

describe('the turns of the scheduler', () => {
  it('come at least as often as asked, with and without anything that is due', () => {
    const clock = new HeldClock();
    const onTurn = vi.fn();
    const scheduler = new Scheduler(clock);
    scheduler.onTurn(100, onTurn);
    clock.advance(1_000);
    expect(onTurn.mock.calls.length).toBeGreaterThanOrEqual(9);
    onTurn.mockClear();
    const once = {
      nextDue: clock.monotonic() + 550,
      startDue: () => {
        once.nextDue = Number.POSITIVE_INFINITY;
      },
    };
    scheduler.arrange(once);
    clock.advance(1_000);
    expect(onTurn.mock.calls.length).toBeGreaterThanOrEqual(9);
  });

  it('end when the loop is not called any more, and when it is stopped', async () => {
    const clock = new HeldClock();
    const onTurn = vi.fn();
    const scheduler = new Scheduler(clock);
    scheduler.onTurn(100, onTurn);
    clock.timersAreLost = true;
    clock.advance(1_000);
    expect(onTurn).not.toHaveBeenCalled();
    clock.timersAreLost = false;
    clock.advance(200);
    expect(onTurn).toHaveBeenCalled();
    scheduler.stop();
    onTurn.mockClear();
    clock.advance(1_000);
    expect(onTurn).not.toHaveBeenCalled();
  });
});

describe('calls that get no turn', () => {
  const { signal } = new AbortController();

  function callsOf(requestsPerMinute: number) {
    const clock = new HeldClock();
    const share = new ServerShare({ requestsPerMinute, monotonic: clock.monotonic });
    return { clock, share, calls: new Calls({ concurrency: 1, share, clock }) };
  }

  /** Time passes second by second, and what waits for it goes on. */
  async function pass(clock: HeldClock, seconds: number, each: () => void = () => {}) {
    for (let second = 0; second < seconds; second++) {
      each();
      clock.advance(1_000);
      await new Promise(setImmediate);
    }
  }

  it('are no stall while the rate asks for the pause, or while one runs', async () => {
    const { clock, calls } = callsOf(2);
    let done = 0;
    const all = [1, 2, 3].map(() => calls.run('live', signal, async () => void done++));
    await pass(clock, 100, () => expect(calls.stalled).toBe(false));
    await Promise.all(all);
    expect(done).toBe(3);

    let end = () => {};
    const running = calls.run('live', signal, () => new Promise<void>((resolve) => (end = resolve)));
    const waiting = calls.run('live', signal, async () => {});
    await pass(clock, 600);
    expect(calls.stalled, 'a long call has limits of its own').toBe(false);
    end();
    await running;
    await pass(clock, 60);
    await waiting;
  });

  it('are a stall when nothing runs for long', async () => {
    const { clock, calls } = callsOf(1);
    const all = [1, 2].map(() => calls.run('live', signal, async () => {}));
    await all[0];
    await new Promise(setImmediate);
    clock.timersAreLost = true;
    clock.advance(3_600_000);
    expect(calls.waiting).toBe(1);
    expect(calls.stalled).toBe(true);
    clock.timersAreLost = false;
    clock.advance(1);
    await all[1];
    expect(calls.stalled).toBe(false);
  });
});
