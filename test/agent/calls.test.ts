/** The queue of calls: who is next, at which rate, and what happens while a call hangs, as is written in calls.txt. */
import { getEventListeners } from 'node:events';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { CallSlot, Calls, Entrance, MAX_QUEUED_POLLS } from '../../src/agent/calls.ts';
import { ServerShare } from '../../src/agent/server-share.ts';
import { asJobtailError, JobtailError } from '../../src/errors.ts';
import { sleep } from '../../src/system/clock.ts';
import { expectCases } from '../support/errors.ts';
import { HeldClock, writtenMs } from '../support/held-clock.ts';

const LANES = ['asked', 'begun', 'live', 'raw', 'wanted', 'ending', 'patient'] as const;
type Lane = (typeof LANES)[number];

interface Options {
  readonly concurrency?: number;
  readonly perMinute?: number;
  /** The agents of a fleet. */
  readonly sharers?: number;
  /** So many calls hang before the server opens another connection for the account, which takes a while. */
  readonly blocked?: number;
  readonly openMs?: number;
}

class CallsStory {
  readonly clock = new HeldClock();
  readonly share: ServerShare;
  readonly calls: Calls;
  /** What happened since the last line, each with its times. */
  readonly #events = new Map<string, number[]>();
  readonly #stops = new Map<string, AbortController>();
  readonly #slots = new Map<string, CallSlot>();
  #signedInAt = 0;
  #called = 0;
  #blocked: number;
  #openMs: number;

  constructor({ concurrency = 1, perMinute, sharers, blocked = 0, openMs = 0 }: Options) {
    const { clock } = this;
    const { monotonic } = clock;
    const signedInAt = () => this.#signedInAt;
    this.share = new ServerShare({ requestsPerMinute: perMinute ?? null, monotonic, signedInAt });
    const shared = sharers === undefined ? undefined : { sharers, called: () => void this.#called++ };
    this.calls = new Calls({ concurrency, share: this.share, clock, shared });
    this.#blocked = blocked;
    this.#openMs = openMs;
    this.calls.watchHanging(
      async (kind, stop) => {
        this.#note(`short ${kind}`);
        await this.#serve(60_000, stop).catch((thrown: unknown) => {
          this.#note(`short ${kind} ends`);
          throw thrown;
        });
      },
      (calls, hasResponse) => this.#note(`${calls} short calls ${hasResponse ? 'were enough' : 'in vain'}`),
    );
  }

  #note(event: string): void {
    this.#events.set(event, [...(this.#events.get(event) ?? []), this.clock.monotonic() / 1_000]);
  }

  /** An account that is blocked has no response for so long; another one has it at once. */
  async #serve(limitMs: number, stop: AbortSignal): Promise<void> {
    if (this.#blocked > 0) {
      this.#blocked -= 1;
      await sleep(this.clock, limitMs, stop);
      throw new JobtailError('timeout', 'the service did not start to respond in time');
    }
    await sleep(this.clock, this.#openMs, stop);
    this.#openMs = 0;
    this.#answer(10);
  }

  #answer(firstByteMs: number, workMs = 1): void {
    this.share.responded({ status: 200, firstByteMs, workMs, retryAfterMs: undefined });
  }

  #stopOf(name: string): AbortSignal {
    const stop = this.#stops.get(name) ?? new AbortController();
    this.#stops.set(name, stop);
    return stop.signal;
  }

  /** Calls of one name: `for 5s` without a response, `ask` of the server, or answered after so long, which it reports. */
  #call(name: string, [how, time = '0s', reported]: readonly string[], run: (call: () => Promise<void>) => unknown) {
    const signal = this.#stopOf(name);
    const call = async () => {
      this.#note(`${name} begins`);
      if (how === 'ask') return await this.#serve(writtenMs(time), signal);
      await sleep(this.clock, writtenMs(time), signal);
      if (how === 'answered') this.#answer(writtenMs(reported ?? time));
    };
    const ended = Promise.resolve(run(call));
    ended.catch((thrown: unknown) => this.#note(`${name} ends: ${asJobtailError(thrown).code}`));
  }

  async do(step: string): Promise<string[]> {
    const { calls, share, clock } = this;
    const [word = '', first = '', ...rest] = step.split(' ');
    const [lane = 'live', ...how] = rest as [Lane, ...string[]];
    const steps: Readonly<Record<string, () => unknown>> = {
      call: () => {
        const [, name = '', count = '1'] = /^([^*]+)(?:\*(\d+))?$/.exec(first) ?? [];
        for (let each = 0; each < Number(count); each++)
          this.#call(name, how, (call) => calls.run(lane, this.#stopOf(name), call));
      },
      slot: () => {
        const slot = this.#slots.get(first) ?? new CallSlot(calls, lane, this.#stopOf(first));
        this.#slots.set(first, slot);
        const noted = (thrown: unknown) => this.#note(`${first}: ${asJobtailError(thrown).code}`);
        void slot.take().then(() => this.#note(`${first} is taken`), noted);
      },
      use: () => this.#call(`in ${first}`, how, (call) => this.#slots.get(first)?.run(lane, this.#stopOf(''), call)),
      end: () => this.#slots.get(first)?.end(),
      stop: () => this.#stops.get(first)?.abort(),
      answer: () => this.#answer(writtenMs(first), writtenMs(first)),
      retry: () => share.responded({ status: 503, firstByteMs: 10, workMs: 1, retryAfterMs: writtenMs(first) }),
      signin: () => (this.#signedInAt = first === 'waits' ? Number.POSITIVE_INFINITY : clock.monotonic()),
      blocks: () => (this.#blocked = Number(first)),
      lose: () => vi.spyOn(clock, 'timer').mockReturnValue(() => {}),
      find: () => vi.mocked(clock.timer).mock.lastCall?.[1](),
    };
    if (word !== 'pass') {
      if (steps[word] === undefined) throw new Error(`no step: ${step}`);
      steps[word]();
      // What is let in by this step begins in it.
      for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
      return [];
    }
    await clock.pass(writtenMs(first));
    const events = [...this.#events].map(([event, times]) => {
      const [from, to] = [times[0], times.at(-1)];
      return `${event} ${times.length > 4 ? `${times.length} times, ${from} to ${to}` : times.join(' ')}`;
    });
    this.#events.clear();
    const opensInMs = Math.round(share.opensAt - clock.monotonic());
    const counts = { waiting: calls.waiting, timers: clock.timers, called: this.#called, 'ms closed': opensInMs };
    const shown = Object.entries(counts).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []));
    if (calls.stalled) shown.push('stalled');
    return [`${step}: ${[...events, ...shown].join(', ') || 'nothing'}`];
  }
}

it('calls begin, hang and end as is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'calls.txt'), async (written) => {
    const steps = written.split('; ');
    const story = new CallsStory(steps[0]?.startsWith('{') ? JSON.parse(steps.shift() ?? '') : {});
    const result: string[] = [];
    for (const step of steps) result.push(...(await story.do(step)));
    return result;
  });
});

it('polls wait before the queue while it is full; a stopped one does not, and gives no place to others', async () => {
  const entrance = new Entrance();
  const entered: number[] = [];
  const jobs = Array.from({ length: MAX_QUEUED_POLLS + 3 }, () => new AbortController());
  const all = jobs.map(async (job, index) => {
    const leave = await entrance.enter(job.signal);
    entered.push(index);
    return leave;
  });
  const gone = entrance.enter(AbortSignal.abort());
  expect(entrance.waiting).toBe(3);
  (await gone)();
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

it('while calls of all lanes wait, each lane gets its share of them', async () => {
  const { clock, calls } = new CallsStory({ perMinute: 1_000_000 });
  const stop = new AbortController();
  const begun: Record<string, number> = {};
  const keepUp = async (lane: Lane) => {
    while (!stop.signal.aborted)
      await calls.run(lane, stop.signal, async () => {
        begun[lane] = (begun[lane] ?? 0) + 1;
        await sleep(clock, 100);
      });
  };
  const busy = LANES.flatMap((lane) => Array.from({ length: 5 }, () => keepUp(lane)));
  const rounds = 10;
  await clock.pass(rounds * 37 * 100);
  const shares = { asked: 16, begun: 8, live: 4, raw: 4, wanted: 2, ending: 2, patient: 1 };
  for (const [lane, inRound] of Object.entries(shares)) expect(begun[lane], lane).toBeCloseTo(rounds * inRound, -1);
  stop.abort();
  await clock.passWhile(Promise.allSettled(busy));
});
