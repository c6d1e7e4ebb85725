/** Tests lines against the expressions of rules in a thread, which is ended when an expression takes too long. */
import { Worker } from 'node:worker_threads';
import { packageFile } from '../system/package-file.ts';

/** The indexes of matching lines; undefined if they were not tested, because that takes too long. */
export type Matches = (pattern: string, lines: readonly string[]) => Promise<number[] | undefined>;

export interface MatchWork {
  readonly pattern: string;
  readonly lines: readonly string[];
}

/** For one rule and one piece of a file, which usually takes milliseconds. */
const MAX_MS = 5_000;
/** For all rules together in a minute: then, lines are skipped until it is over. */
const MAX_MS_PER_MINUTE = 20_000;
const MINUTE_MS = 60_000;
const LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 };

export class MatchThread {
  #worker: Worker | undefined;
  #answer: (found: number[] | undefined) => void = () => {};
  #minuteAt = Number.NEGATIVE_INFINITY;
  #spentMs = 0;

  /** One at a time. */
  readonly matches: Matches = async (pattern, lines) => {
    const startedAt = performance.now();
    if (startedAt - this.#minuteAt >= MINUTE_MS) [this.#minuteAt, this.#spentMs] = [startedAt, 0];
    if (this.#spentMs >= MAX_MS_PER_MINUTE) return undefined;
    const found = await this.#ask({ pattern, lines });
    this.#spentMs += performance.now() - startedAt;
    return found;
  };

  close(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
    this.#answer(undefined);
  }

  #ask(work: MatchWork): Promise<number[] | undefined> {
    this.#worker ??= this.#begin();
    this.#worker.postMessage(work);
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.close(), MAX_MS);
      this.#answer = (found) => {
        clearTimeout(timer);
        resolve(found);
      };
    });
  }

  #begin(): Worker {
    const worker = new Worker(packageFile('dist/notify/match-worker.js'), { resourceLimits: LIMITS });
    const ended = () => {
      if (this.#worker === worker) this.close();
    };
    worker.on('message', (found: number[]) => this.#answer(found));
    // The failure of a thread is none of the agent.
    worker.on('error', ended);
    worker.on('exit', ended);
    worker.unref();
    return worker;
  }
}
