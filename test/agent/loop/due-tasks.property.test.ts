/** No request is lost: what is requested of a job begins by its time, whatever runs and ends meanwhile. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type DueTask, DueTasks, Scheduler } from '../../../src/agent/loop/scheduler.ts';
import { HeldClock } from '../../support/held-clock.ts';

const RUN_MS = 3_000;
const DELAY_MS = 5_000;
/** After each run, the next one is planned so late: what is requested must not wait for it. */
const INTERVAL_MS = 60_000;
/** A run of the same task, and one of a task that it waits for, may be under way. */
const BOUND_MS = 3 * RUN_MS;

const TASKS = ['poll', 'results', 'search'] as const satisfies readonly DueTask[];

const request = fc.record({
  /** Milliseconds after the request before it. */
  afterMs: fc.oneof(fc.constant(0), fc.nat(RUN_MS), fc.nat(DELAY_MS)),
  task: fc.constantFrom(...TASKS),
  delayMs: fc.oneof(fc.constant(0), fc.nat(DELAY_MS)),
});
const runTimes = fc.array(fc.oneof(fc.constant(0), fc.nat(RUN_MS)), { minLength: 1, maxLength: 5 });

it('a task that is requested begins by its time', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 8 }), runTimes, async (requests, times) => {
      const clock = new HeldClock();
      const begun: { readonly task: DueTask; readonly at: number }[] = [];
      const run = async (task: DueTask) => {
        begun.push({ task, at: clock.monotonic() });
        const ms = times[begun.length % times.length] ?? 0;
        await new Promise<void>((resolve) => void clock.timer(ms, resolve));
        // In the same turn as a request, now and then.
        tasks.dueAgain(task, INTERVAL_MS);
      };
      const tasks = new DueTasks({ clock, scheduler: new Scheduler(clock), run, onIdle: () => {} });
      const wanted: { readonly task: DueTask; readonly before: number; readonly byMs: number }[] = [];
      for (const { afterMs, task, delayMs } of requests) {
        clock.timer(afterMs, () => {
          wanted.push({ task, before: begun.length, byMs: clock.monotonic() + delayMs + BOUND_MS });
          tasks.due(task, delayMs);
        });
        await clock.pass(afterMs);
      }
      await clock.pass(DELAY_MS + BOUND_MS);
      for (const { task, before, byMs } of wanted) {
        const next = begun.slice(before).find((one) => one.task === task);
        expect(next?.at ?? Number.POSITIVE_INFINITY, `${task} by ${byMs}`).toBeLessThanOrEqual(byMs);
      }
    }),
  );
});
