/** No request is lost: what is requested of a job begins by its time, whatever runs and ends meanwhile. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type DueRun, DueRuns } from '../../../src/agent/schedule/due-runs.ts';
import { Scheduler } from '../../../src/agent/schedule/scheduler.ts';
import { HeldClock } from '../../support/held-clock.ts';

const RUN_MS = 3_000;
const DELAY_MS = 5_000;
/** After each run, the next one is planned so late: what is requested must not wait for it. */
const INTERVAL_MS = 60_000;
/** A run of the same kind, and one that it waits for, may be under way. */
const BOUND_MS = 3 * RUN_MS;

const KINDS = ['poll', 'results', 'search'] as const satisfies readonly DueRun[];

const request = fc.record({
  /** Milliseconds after the request before it. */
  afterMs: fc.oneof(fc.constant(0), fc.nat(RUN_MS), fc.nat(DELAY_MS)),
  kind: fc.constantFrom(...KINDS),
  delayMs: fc.oneof(fc.constant(0), fc.nat(DELAY_MS)),
});
const runTimes = fc.array(fc.oneof(fc.constant(0), fc.nat(RUN_MS)), { minLength: 1, maxLength: 5 });

it('a run that is requested begins by its time', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 8 }), runTimes, async (requests, times) => {
      const clock = new HeldClock();
      const begun: { readonly kind: DueRun; readonly at: number }[] = [];
      const run = async (kind: DueRun) => {
        begun.push({ kind, at: clock.monotonic() });
        const ms = times[begun.length % times.length] ?? 0;
        await new Promise<void>((resolve) => void clock.timer(ms, resolve));
        // In the same turn as a request, now and then.
        due.planAgain(kind, INTERVAL_MS);
      };
      const due = new DueRuns({
        clock,
        scheduler: new Scheduler(clock),
        run,
        onIdle: () => {},
        signal: new AbortController().signal,
      });
      const wanted: { readonly kind: DueRun; readonly before: number; readonly byMs: number }[] = [];
      for (const { afterMs, kind, delayMs } of requests) {
        clock.timer(afterMs, () => {
          wanted.push({ kind, before: begun.length, byMs: clock.monotonic() + delayMs + BOUND_MS });
          due.plan(kind, delayMs);
        });
        await clock.pass(afterMs);
      }
      await clock.pass(DELAY_MS + BOUND_MS);
      for (const { kind, before, byMs } of wanted) {
        const next = begun.slice(before).find((one) => one.kind === kind);
        expect(next?.at ?? Number.POSITIVE_INFINITY, `${kind} by ${byMs}`).toBeLessThanOrEqual(byMs);
      }
    }),
  );
});
