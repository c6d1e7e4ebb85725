/** A thread for the regular expressions of people, which is ended when one takes too long: it might never end. */
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { processorMs } from '../system/clock.ts';
import { packageFile } from '../system/package-file.ts';

/** For one request, which usually takes milliseconds. */
const MAX_MS = 5_000;
/** So often it is given as long again, where the process did not get half of it. */
const MAX_AGAIN = 5;

export class GuardedThread<Request, Answer> {
  readonly #file: string;
  readonly #options: WorkerOptions;
  #worker: Worker | undefined;
  /** Of the requests, in their order. */
  #waiting: ((answer: Answer | undefined) => void)[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `file`: the code of the thread, which answers each message by one. */
  constructor(file: string, options: WorkerOptions) {
    this.#file = file;
    this.#options = options;
  }

  /** Undefined if it takes too long, or too much memory. The thread begins with the first request. */
  ask(request: Request): Promise<Answer | undefined> {
    this.#worker ??= this.#begin();
    this.#worker.postMessage(request);
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) this.#guard();
    });
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#guard();
    for (const resolve of waiting) resolve(undefined);
    await worker?.terminate();
  }

  /** From now on, the first request that waits has its time. */
  #guard(): void {
    clearTimeout(this.#timer);
    if (this.#waiting.length === 0) return;
    const before = processorMs();
    let again = 0;
    const timer = setTimeout(() => {
      if (again++ >= MAX_AGAIN || processorMs() - before >= MAX_MS / 2) void this.close();
      else timer.refresh();
    }, MAX_MS);
    this.#timer = timer;
  }

  #begin(): Worker {
    const worker = new Worker(packageFile(this.#file), this.#options);
    worker.on('message', (answer: Answer) => {
      if (this.#worker !== worker) return;
      this.#waiting.shift()?.(answer);
      this.#guard();
    });
    // The failure of a thread is none of the program.
    worker.on('error', () => {
      if (this.#worker === worker) void this.close();
    });
    worker.unref();
    return worker;
  }
}

export interface ExpressionWork {
  readonly source: string;
  readonly flags: string;
  readonly texts: readonly string[];
  /** Where matches in each text may begin; left out: only whether there is one in it. */
  readonly from?: readonly number[];
}

/** Of each text, the index and the length of each match, one after the other. */
export type FoundInTexts = readonly (readonly number[])[];

const EXPRESSION_LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 };

export const expressionThread = () =>
  new GuardedThread<ExpressionWork, FoundInTexts>('dist/search/expression-worker.js', {
    resourceLimits: EXPRESSION_LIMITS,
  });

/** The indexes of the texts in which there is a match; undefined as for `ask`. */
export async function matchingIn(
  thread: ReturnType<typeof expressionThread>,
  source: string,
  texts: readonly string[],
): Promise<number[] | undefined> {
  const found = await thread.ask({ source, flags: '', texts });
  return found?.flatMap(({ length }, index) => (length > 0 ? [index] : []));
}
