/** What ends the pause between two rounds early: a notification of the database, or a call of this process. */
import { type Clock, sleep } from '../system/clock.ts';

/** Notifications within this time count as one. */
const TOGETHER_MS = 20;

/** Notifications of the database: a command was placed, or jobs were released. */
export class Notices {
  readonly #clock: Pick<Clock, 'timer'>;
  readonly #process: () => Promise<void>;
  #processing: Promise<void> | undefined;
  #isReportedAgain = false;
  #isClosed = false;

  constructor(clock: Pick<Clock, 'timer'>, process: () => Promise<void>) {
    this.#clock = clock;
    this.#process = process;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#processing;
  }

  readonly reported = (): void => {
    this.#isReportedAgain = true;
    this.#processing ??= this.#processAll().finally(() => {
      this.#processing = undefined;
    });
  };

  /** A notification during the processing starts it again. */
  async #processAll(): Promise<void> {
    while (this.#isReportedAgain && !this.#isClosed) {
      await sleep(this.#clock, TOGETHER_MS);
      this.#isReportedAgain = false;
      await this.#process().catch(() => {});
    }
  }
}

/** A pause that a notification ends, also a notification from before the pause. */
export class Wakeable {
  readonly #clock: Pick<Clock, 'timer'>;
  #isWanted = false;
  #end: () => void = () => {};

  constructor(clock: Pick<Clock, 'timer'>) {
    this.#clock = clock;
  }

  wake(): void {
    this.#isWanted = true;
    this.#end();
  }

  async pause(ms: number): Promise<void> {
    if (!this.#isWanted) {
      let cancel = () => {};
      await new Promise<void>((resolve) => {
        this.#end = resolve;
        cancel = this.#clock.timer(ms, resolve);
      });
      cancel();
    }
    this.#isWanted = false;
  }
}
