/** Runs the regular expressions of people in a thread, which is ended when one takes too long: it might never end. */
import { Worker } from 'node:worker_threads';
import { packageFile } from '../system/package-file.ts';
import { processorMs } from '../system/processor-time.ts';

export interface ExpressionWork {
  readonly source: string;
  readonly flags: string;
  readonly texts: readonly string[];
  /** Where matches in each text may begin; left out: only whether there is one in it. */
  readonly from?: readonly number[];
}

/** Of each text, the index and the length of each match, one after the other. */
export type FoundInTexts = readonly (readonly number[])[];

/** For one piece of a file, which usually takes milliseconds. */
const MAX_MS = 5_000;
/** So often it is given as long again, where the process did not get half of it. */
const MAX_AGAIN = 5;
const LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 };

export class ExpressionThread {
  #worker: Worker | undefined;
  #answer: (found: FoundInTexts | undefined) => void = () => {};

  /** One at a time; undefined if it takes too long, or too much memory. The thread begins with the first one. */
  find(work: ExpressionWork): Promise<FoundInTexts | undefined> {
    this.#worker ??= this.#begin();
    this.#worker.postMessage(work);
    return new Promise((resolve) => {
      const before = processorMs();
      let again = 0;
      const end = () => {
        if (again++ >= MAX_AGAIN || processorMs() - before >= MAX_MS / 2) this.close();
        else timer.refresh();
      };
      const timer = setTimeout(end, MAX_MS);
      this.#answer = (found) => {
        clearTimeout(timer);
        resolve(found);
      };
    });
  }

  /** The indexes of the texts in which there is a match; undefined as for `find`. */
  async matching(source: string, texts: readonly string[]): Promise<number[] | undefined> {
    const found = await this.find({ source, flags: '', texts });
    return found?.flatMap(({ length }, index) => (length > 0 ? [index] : []));
  }

  close(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
    this.#answer(undefined);
  }

  #begin(): Worker {
    const worker = new Worker(packageFile('dist/search/expression-worker.js'), { resourceLimits: LIMITS });
    const ended = () => {
      if (this.#worker === worker) this.close();
    };
    worker.on('message', (found: FoundInTexts) => this.#answer(found));
    // The failure of a thread is none of the program.
    worker.on('error', ended);
    worker.on('exit', ended);
    worker.unref();
    return worker;
  }
}
