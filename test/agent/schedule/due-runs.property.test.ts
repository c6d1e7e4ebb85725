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

it.each(KINDS)('a pass begins when the %s run of its job has ended', async (other) => {
  const clock = new HeldClock();
  const steps: string[] = [];
  const run = async (kind: DueRun) => {
    steps.push(`${kind} begins`);
    await new Promise<void>((resolve) => void clock.timer(RUN_MS, resolve));
    steps.push(`${kind} ends`);
  };
  const due = new DueRuns({
    clock,
    scheduler: new Scheduler(clock),
    run,
    onIdle: () => {},
    signal: new AbortController().signal,
  });
  due.plan(other);
  due.plan('pass', RUN_MS / 2);
  await clock.pass(3 * RUN_MS);
  expect(steps).toEqual([`${other} begins`, `${other} ends`, 'pass begins', 'pass ends']);
});

it('the first poll that a pass admits comes after the given time, even if one was due before', async () => {
  const clock = new HeldClock();
  const begun: string[] = [];
  const run = async (kind: DueRun) => {
    begun.push(`${kind} at ${clock.monotonic()}`);
    if (kind === 'poll') return;
    due.plan('poll', RUN_MS);
    due.admitPolls(3 * RUN_MS);
    await new Promise<void>((resolve) => void clock.timer(9 * RUN_MS, resolve));
  };
  const { signal } = new AbortController();
  const due = new DueRuns({ clock, scheduler: new Scheduler(clock), run, onIdle: () => {}, signal });
  due.plan('pass');
  const from = clock.monotonic();
  await clock.pass(10 * RUN_MS);
  expect(begun).toEqual([`pass at ${from}`, `poll at ${from + 3 * RUN_MS}`]);
});

it.each(['results', 'search'] as const)(
  'polls begin beside a pass while it waits for %s, and once it admits them; nothing else does',
  async (first) => {
    const clock = new HeldClock();
    const steps: string[] = [];
    const other = first === 'results' ? 'search' : 'results';
    const times: Readonly<Record<string, number>> = {
      poll: RUN_MS,
      [first]: 10 * RUN_MS,
      [other]: 0,
      pass: 10 * RUN_MS,
    };
    const run = async (kind: DueRun) => {
      steps.push(`${kind} begins`);
      if (kind === 'pass')
        clock.timer(5 * RUN_MS, () => {
          steps.push('pass admits polls');
          due.admitPolls(0);
        });
      await new Promise<void>((resolve) => void clock.timer(times[kind] ?? 0, resolve));
      steps.push(`${kind} ends`);
      if (kind === 'poll') due.plan('poll', RUN_MS);
    };
    const due = new DueRuns({
      clock,
      scheduler: new Scheduler(clock),
      run,
      onIdle: () => {},
      signal: new AbortController().signal,
    });
    due.plan(first, 0);
    await clock.pass(1);
    due.plan('pass', 0);
    for (let ms = 0; ms < 25 * RUN_MS; ms += RUN_MS / 2) {
      due.plan('poll');
      due.plan(other, 0);
      await clock.pass(RUN_MS / 2);
    }
    const between = (from: string, to: string) => steps.slice(steps.indexOf(from) + 1, steps.indexOf(to));
    const polls = (of: readonly string[]) => of.filter((step) => step === 'poll begins').length;
    const waiting = between(`${first} begins`, 'pass begins');
    expect(polls(waiting)).toBeGreaterThanOrEqual(3);
    // It begins with none under way, whatever ended last.
    expect(waiting.filter((step) => step === 'poll ends').length).toBe(polls(waiting));
    expect(between('pass begins', 'pass admits polls')).toEqual([]);
    const admitted = between('pass admits polls', 'pass ends');
    expect(polls(admitted)).toBeGreaterThanOrEqual(1);
    expect([...waiting, ...admitted].filter((step) => step.startsWith(other))).toEqual([]);
  },
);
