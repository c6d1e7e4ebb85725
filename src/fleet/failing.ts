/** What fails of the fleet: said once when it begins, and once when it is over; and whether the agent can be a part of it at all. */
import type { Log } from '../agent/ports.ts';
import type { JobtailError } from '../errors.ts';

const SCOPE = 'the fleet';

export class Failing {
  /** Rejects if it cannot be a part of the fleet: its name is taken, or the tables are those of a newer version. */
  readonly forGood: Promise<never>;
  readonly #log: Log;
  #end: (error: JobtailError) => void = () => {};
  #isFailing = false;

  constructor(log: Log) {
    this.#log = log;
    this.forGood = new Promise((_, reject) => {
      this.#end = reject;
    });
    this.forGood.catch(() => {});
  }

  failed(error: JobtailError): void {
    const { code, message, hint } = error;
    if (code === 'config' || code === 'locked') this.#end(error);
    if (this.#isFailing) this.#log.debug({ scope: SCOPE, code, err: message }, 'still failing');
    else this.#log.error({ scope: SCOPE, code, err: message, hint }, `${SCOPE} failed: ${message}`);
    this.#isFailing = true;
  }

  /** It works, which is said otherwise. */
  begin(): void {
    this.#isFailing = false;
  }

  worked(): void {
    if (this.#isFailing) this.#log.info({ scope: SCOPE }, `${SCOPE} works again`);
    this.#isFailing = false;
  }
}
