/**
 * A thread that serves requests, which is started again with back-off when it ends; the agent continues. At the end of the
 * file: what runs in the thread.
 */
import { parentPort, Worker } from 'node:worker_threads';
import { BackOff } from '../back-off.ts';
import { asJobtailError } from '../errors.ts';
import type { Served } from '../http/server.ts';

type FromThread =
  | { readonly kind: 'serving'; readonly port: number }
  /** It was asked for a sign of life. */
  | { readonly kind: 'pulse' }
  /** It goes on, but something went wrong. */
  | { readonly kind: 'failure'; readonly message: string };

type ToThread = { readonly kind: 'pulse' } | { readonly kind: 'close' };

interface ServingThreadOptions<Data> {
  readonly program: string;
  readonly pulseMs?: number | undefined;
  /** Sent with each pulse. */
  readonly pulse?: () => object;
  readonly onServing: (data: Data, port: number) => void;
  readonly onFailure: (message: string) => void;
  /** It ended, or could not begin; `isFirst`: since it last served for long. */
  readonly onEnded: (data: Data, why: string, isFirst: boolean) => void;
}

/** A request that needs too much memory ends the thread, not the agent. */
const LIMITS = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 };
const PAUSE = { firstMs: 1_000, maxMs: 60_000 };
/** After this time, the next failure is a new one. */
const LONG_MS = 60_000;
const CLOSE_MS = 2_000;
/** A thread that leaves this number of pulses unanswered is ended: 30 s. Not by the clock, which a suspended machine moves. */
const MAX_MISSED = 6;
const PULSE_MS = 5_000;

export class ServingThread<Data> {
  readonly #options: ServingThreadOptions<Data>;
  readonly #pause = new BackOff({ ...PAUSE, nowMs: () => performance.now(), random: Math.random });
  #data: Data | null = null;
  #thread: Worker | undefined;
  #again: NodeJS.Timeout | undefined;
  #why = '';
  #servesSince = Number.POSITIVE_INFINITY;
  #serving: Promise<void> = Promise.resolve();

  constructor(options: ServingThreadOptions<Data>) {
    this.#options = options;
  }

  /** Serves with this data; null: stops. A running thread with equal data continues. */
  async use(data: Data | null): Promise<void> {
    if (JSON.stringify(data) === JSON.stringify(this.#data)) return;
    await this.close();
    this.#data = data;
    if (data !== null) this.#begin(data);
  }

  /** Sends what goes with each pulse now. */
  pulse(): void {
    this.#thread?.postMessage({ kind: 'pulse', ...this.#options.pulse?.() } satisfies ToThread);
  }

  /** Resolves when the thread that was begun last serves. @throws Error if it ended before */
  serving(): Promise<void> {
    return this.#serving;
  }

  async close(): Promise<void> {
    this.#data = null;
    clearTimeout(this.#again);
    this.#pause.reset();
    const thread = this.#thread;
    this.#thread = undefined;
    if (thread === undefined) return;
    const ended = new Promise((resolve) => thread.once('exit', resolve));
    thread.postMessage({ kind: 'close' } satisfies ToThread);
    const timer = setTimeout(() => void thread.terminate(), CLOSE_MS);
    await ended;
    clearTimeout(timer);
  }

  #begin(data: Data): void {
    this.#why = 'it ended';
    const { pulseMs = PULSE_MS, program } = this.#options;
    let thread: Worker;
    try {
      thread = new Worker(program, { workerData: data, resourceLimits: LIMITS });
    } catch (thrown) {
      // The system has a limit of threads.
      this.#why = `no thread can be started: ${asJobtailError(thrown).message}`;
      this.#serving = Promise.reject(new Error(this.#why));
      this.#serving.catch(() => {});
      this.#ended(data);
      return;
    }
    this.#thread = thread;
    this.#serving = new Promise((resolve, reject) => {
      thread.on('message', ({ kind }: FromThread) => kind === 'serving' && resolve());
      thread.once('exit', () => reject(new Error(this.#why)));
    });
    this.#serving.catch(() => {});
    let missed = 0;
    const pulse = setInterval(() => {
      if (missed++ < MAX_MISSED) return this.pulse();
      this.#why = `it did not answer for ${(MAX_MISSED * pulseMs) / 1000} s`;
      void thread.terminate();
    }, pulseMs);
    thread.on('message', (message: FromThread) => {
      switch (message.kind) {
        case 'pulse':
          missed = 0;
          return;
        case 'serving':
          this.#servesSince = performance.now();
          return this.#options.onServing(data, message.port);
        case 'failure':
          return this.#options.onFailure(message.message);
      }
    });
    thread.on('error', (error) => {
      this.#why = error.message;
    });
    thread.on('exit', () => {
      clearInterval(pulse);
      if (this.#thread === thread) this.#ended(data);
    });
  }

  #ended(data: Data): void {
    this.#thread = undefined;
    if (performance.now() - this.#servesSince > LONG_MS) this.#pause.reset();
    this.#servesSince = Number.POSITIVE_INFINITY;
    const isFirst = this.#pause.failures === 0;
    this.#pause.lengthen();
    this.#options.onEnded(data, this.#why, isFirst);
    this.#again = setTimeout(() => this.#begin(data), this.#pause.remainingMs);
  }
}

/** Serves until the agent ends it. @throws JobtailError, which ends the thread */
export async function serveInThread<Pulse>(
  serve: (onFailure: (error: unknown) => void) => Promise<Served>,
  onPulse: (pulse: Pulse) => void = () => {},
): Promise<void> {
  const agent = parentPort;
  if (agent === null) throw new Error('this is a thread of the agent');
  const report = (message: FromThread) => agent.postMessage(message);
  let served: Served | undefined;
  agent.on('message', (message: ToThread & Pulse) => {
    if (message.kind === 'close') return void Promise.resolve(served?.close()).finally(() => process.exit());
    onPulse(message);
    report({ kind: 'pulse' });
  });
  try {
    served = await serve((error) => report({ kind: 'failure', message: asJobtailError(error).message }));
  } catch (thrown) {
    throw asJobtailError(thrown);
  }
  report({ kind: 'serving', port: served.port });
}
