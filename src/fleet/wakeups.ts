/** What ends the pause between two rounds early: a notification of the database, or a call of this process. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from './database.ts';
import { ORDERS_CHANNEL } from './orders.ts';

/** They are gathered for so long. */
const TOGETHER_MS = 20;

/** What the database tells its agents: somebody ordered something, or gave jobs back. Many that come together are one. */
export class Notices {
  /** Looks at what is told of. */
  readonly #look: () => Promise<void>;
  #listening: { close(): Promise<void> } | undefined;
  #looking: Promise<void> | undefined;
  #isToldAgain = false;
  #isClosed = false;

  constructor(look: () => Promise<void>) {
    this.#look = look;
  }

  /** @throws JobtailError fleet */
  async listen(database: Database): Promise<void> {
    this.#listening = await database.listen(ORDERS_CHANNEL, () => this.#told());
  }

  /** Resolves when nothing is looked at any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#listening?.close().catch(() => {});
    await this.#looking;
  }

  #told(): void {
    this.#isToldAgain = true;
    this.#looking ??= this.#lookOn().finally(() => {
      this.#looking = undefined;
    });
  }

  /** What is told while it looks is looked at, too. */
  async #lookOn(): Promise<void> {
    while (this.#isToldAgain && !this.#isClosed) {
      await sleep(TOGETHER_MS);
      this.#isToldAgain = false;
      // Whoever keeps the leases says that the database is away.
      await this.#look().catch(() => {});
    }
  }
}

/** A pause that somebody may end: what is said before it begins ends it, too. */
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
