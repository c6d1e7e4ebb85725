/** Ticks of the notifications that come with changes, and rarely without: thousands that do nothing take most of the time. */
import type { Clock } from '../../src/system/clock.ts';

const TICK_MS = 1_000;
const IDLE_TICK_MS = 30_000;
const nothing = () => {};

export class Ticks {
  readonly clock: Clock;
  /** The next tick comes soon, for something changed. */
  soon = nothing;

  constructor(clock: Clock) {
    this.clock = {
      ...clock,
      timer: (delayMs, callback) => {
        if (delayMs !== TICK_MS) return clock.timer(delayMs, callback);
        const over = (then: () => void) => () => {
          this.soon = nothing;
          then();
        };
        let cancel = clock.timer(IDLE_TICK_MS, over(callback));
        this.soon = over(() => {
          cancel();
          cancel = clock.timer(TICK_MS, over(callback));
        });
        return over(() => cancel());
      },
    };
  }
}
