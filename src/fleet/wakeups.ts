/** What ends the pause between two rounds early: a notification of the database, or a call of this process. */
import type { Clock } from '../system/clock.ts';

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
