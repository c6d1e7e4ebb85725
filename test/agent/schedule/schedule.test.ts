/** What is due when, begins beside which other run, and is stopped, as is written in schedule.txt. */
import { getEventListeners } from 'node:events';
import path from 'node:path';
import { it } from 'vitest';
import { type DueRun, DueRuns } from '../../../src/agent/schedule/due-runs.ts';
import { Scheduler } from '../../../src/agent/schedule/scheduler.ts';
import { expectCases } from '../../support/errors.ts';
import { HeldClock, writtenMs } from '../../support/held-clock.ts';

/** How long each run takes, unless it is stopped, and after how long a pass admits polls. */
type Times = Readonly<Partial<Record<DueRun | 'admits', number>>>;

const EVERY_MS = 1_500;

class ScheduleStory {
  readonly #clock = new HeldClock();
  readonly #stop = new AbortController();
  /** What happened since the last line, each with its times. */
  readonly #events = new Map<string, number[]>();
  readonly #jobs = new Map<string, { nextDue: number; startDue(now: number): void }>();
  readonly #scheduler: Scheduler;
  readonly #due: DueRuns;
  #every: readonly DueRun[] = [];

  constructor(times: Times) {
    const clock = this.#clock;
    const timer: HeldClock['timer'] = (delayMs, callback) => {
      this.#note('timer set for', delayMs);
      return clock.timer(delayMs, callback);
    };
    this.#scheduler = new Scheduler({ now: clock.now, monotonic: clock.monotonic, timer });
    const run = async (kind: DueRun, signal: AbortSignal) => {
      this.#note(`${kind} begins`);
      if (kind === 'pass' && times.admits !== undefined) clock.timer(times.admits, () => this.#due.admitPolls(0));
      await new Promise<void>((resolve) => {
        const cancel = clock.timer(times[kind] ?? 3_000, resolve);
        signal.addEventListener('abort', () => {
          cancel();
          this.#note(`${kind} is stopped`);
          resolve();
        });
      });
      this.#note(`${kind} ends`);
    };
    const onIdle = () => this.#note('idle');
    this.#due = new DueRuns({ clock, scheduler: this.#scheduler, run, onIdle, signal: this.#stop.signal });
  }

  #note(event: string, ms = this.#clock.monotonic()): void {
    this.#events.set(event, [...(this.#events.get(event) ?? []), ms / 1_000]);
  }

  #jobOf(name: string) {
    const one = {
      nextDue: Number.POSITIVE_INFINITY,
      startDue: () => {
        this.#note(`${name} starts`);
        one.nextDue = Number.POSITIVE_INFINITY;
      },
    };
    this.#jobs.set(name, this.#jobs.get(name) ?? one);
    return this.#jobs.get(name) ?? one;
  }

  async #pass(ms: number): Promise<string> {
    const clock = this.#clock;
    for (const end = clock.monotonic() + ms; clock.monotonic() < end; ) {
      for (const kind of this.#every) this.#due.plan(kind);
      await clock.pass(this.#every.length > 0 ? EVERY_MS : ms);
    }
    const events = [...this.#events].map(([event, times]) => {
      const [first = 0, second = 0] = times;
      return `${event} ${times.length > 12 ? `${first} ${second} ... ${times.at(-1)} (${times.length})` : times.join(' ')}`;
    });
    this.#events.clear();
    const { nextDue, areIdle } = this.#due;
    if (!areIdle) events.push(nextDue < Number.POSITIVE_INFINITY ? `next due ${nextDue / 1_000}` : 'under way');
    const counts = { timers: clock.timers, listeners: getEventListeners(this.#stop.signal, 'abort').length };
    for (const [what, count] of Object.entries(counts)) if (count > 0) events.push(`${count} ${what}`);
    return events.join(', ') || 'nothing';
  }

  async do(step: string): Promise<string[]> {
    const due = this.#due;
    const [word = '', first = '', time = '0ms'] = step.split(' ');
    const steps: Readonly<Record<string, () => unknown>> = {
      plan: () => due.plan(first as DueRun, writtenMs(time)),
      again: () => due.planAgain(first as DueRun, writtenMs(time)),
      every: () => (this.#every = step.split(' ').slice(1) as DueRun[]),
      cancel: () => due.cancel(...(first === '' ? [] : [[first as DueRun]])),
      stop: () => due.endAll(),
      'stop-job': () => this.#stop.abort(),
      end: () => void due.end().then(() => this.#note('all have ended')),
      admit: () => due.admitPolls(writtenMs(first)),
      // Others than these runs, each due by this time.
      job: () => {
        for (const name of first.split(','))
          this.#scheduler.arrange(Object.assign(this.#jobOf(name), { nextDue: writtenMs(time) }));
      },
      change: () =>
        Object.assign(this.#jobOf(first), { nextDue: time === 'never' ? Number.POSITIVE_INFINITY : writtenMs(time) }),
      turn: () => this.#scheduler.onTurn(writtenMs(first), () => this.#note('turn')),
      halt: () => this.#scheduler.stop(),
    };
    if (word === 'pass') return [`${step}: ${await this.#pass(writtenMs(first))}`];
    if (steps[word] === undefined) throw new Error(`no step: ${step}`);
    steps[word]();
    return [];
  }
}

it('runs and jobs begin, and timers are set, as is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'schedule.txt'), async (written) => {
    const steps = written.split('; ');
    const story = new ScheduleStory(steps[0]?.startsWith('{') ? JSON.parse(steps.shift() ?? '') : {});
    const result: string[] = [];
    for (const step of steps) result.push(...(await story.do(step)));
    return result;
  });
});
