/** What ends the pause between two rounds early: a notification of the database, or a call of this process. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from './database.ts';
import { ORDERS_CHANNEL } from './orders.ts';

/** They are gathered for so long. */
const TOGETHER_MS = 20;

/** Notifications of the database: a command was placed, or jobs were released. Several at once count as one. */
export class Notices {
  /** Processes the notified change. */
  readonly #process: () => Promise<void>;
  #listening: { close(): Promise<void> } | undefined;
  #processing: Promise<void> | undefined;
  #isReportedAgain = false;
  #isClosed = false;

  constructor(process: () => Promise<void>) {
    this.#process = process;
  }

  /** @throws JobtailError fleet */
  async listen(database: Database): Promise<void> {
    this.#listening = await database.listen(ORDERS_CHANNEL, () => this.#reported());
  }

  /** Resolves when nothing is processed any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#listening?.close().catch(() => {});
    await this.#processing;
  }

  #reported(): void {
    this.#isReportedAgain = true;
    this.#processing ??= this.#processAll().finally(() => {
      this.#processing = undefined;
    });
  }

  /** A notification during the processing starts it again. */
  async #processAll(): Promise<void> {
    while (this.#isReportedAgain && !this.#isClosed) {
      await sleep(TOGETHER_MS);
      this.#isReportedAgain = false;
      // The heartbeat reports a lost database.
      await this.#process().catch(() => {});
    }
  }
}

/** A pause that a notification ends, also one from before it begins. */
export class Wakeable {
  #isWanted = false;
  #end: () => void = () => {};

  wake(): void {
    this.#isWanted = true;
    this.#end();
  }

  async pause(ms: number): Promise<void> {
    if (!this.#isWanted) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#end = resolve;
        timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
    }
    this.#isWanted = false;
  }
}
