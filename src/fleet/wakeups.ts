/** What ends the pause between two rounds early: a notification of the database, or a call of this process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { COMMANDS_CHANNEL } from './commands.ts';
import type { Database } from './database.ts';

/** Notifications within this time count as one. */
const TOGETHER_MS = 20;

/** Notifications of the database: a command was placed, or jobs were released. */
export class Notices {
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
    this.#listening = await database.listen(COMMANDS_CHANNEL, () => this.#reported());
  }

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
      await this.#process().catch(() => {});
    }
  }
}

/** A pause that a notification ends, also a notification from before the pause. */
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
