/** Reads the configuration of a running agent again, after a change of its file or on SIGHUP. */
import type { Log } from '../agent/ports/host.ts';
import { type Config, changesOf } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { asJobtailError } from '../errors.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import type { Connection } from './connection.ts';

type Closable = Pick<Connection, 'close'>;

export interface Prepared<Made extends Closable = Connection> {
  readonly config: Config;
  readonly connection: Made;
}

interface ReloadOptions<Made extends Closable> {
  readonly current: Config;
  readonly connect: (config: Config) => Promise<Made>;
  readonly log: Log;
  readonly clock?: Clock;
  /** Called with the reason of a refusal, or undefined after an accepted configuration. */
  readonly onVerdict: (refused: string | undefined) => void;
}

/** An editor may write a file in several steps: it is read after this time without a change. */
const QUIET_MS = 200;

export class Reload<Made extends Closable = Connection> {
  readonly #options: ReloadOptions<Made>;
  #current: Config;
  #cancelTimer: () => void = () => {};
  /** Whether a reload was requested: then an unchanged configuration also renews the connection. */
  #asked = false;
  #reading = Promise.resolve();
  #found: Prepared<Made> | undefined;
  #report: ((found: Prepared<Made>) => void) | undefined;
  #refused: string | undefined;

  constructor(options: ReloadOptions<Made>) {
    this.#options = options;
    this.#current = options.current;
  }

  /** Reads the file again soon; an invalid one is refused, and the old one stays. */
  check({ asked }: { readonly asked: boolean }): void {
    this.#asked ||= asked;
    this.#cancelTimer();
    const { clock = systemClock } = this.#options;
    this.#cancelTimer = clock.timer(QUIET_MS, () => {
      this.#reading = this.#reading.then(() => {
        const isAsked = this.#asked;
        return this.#read().catch((error: unknown) => this.#refuse(asJobtailError(error).message, isAsked));
      });
    });
  }

  async next(): Promise<Prepared<Made>> {
    const found = this.#found;
    this.#found = undefined;
    if (found !== undefined) return found;
    return new Promise((resolve) => {
      this.#report = resolve;
    });
  }

  async close(): Promise<void> {
    this.#cancelTimer();
    await this.#reading;
    await this.#found?.connection.close();
  }

  async #read(): Promise<void> {
    const { log, connect, onVerdict } = this.#options;
    const asked = this.#asked;
    const config = await loadConfig(this.#current.file);
    const { sections: changes, restart } = changesOf(this.#current, config);
    if (restart.length > 0) {
      this.#refuse(`a change of ${restart.join(' and ')} needs a restart`, asked);
      return;
    }
    this.#refused = undefined;
    if (changes.length === 0 && !asked) {
      onVerdict(undefined);
      return;
    }
    // Before it reads files: a change after that is a new request.
    this.#asked = false;
    const connection = await connect(config).catch((thrown: unknown) => {
      // The corrected configuration is loaded as if the signal came again.
      this.#asked ||= asked;
      throw thrown;
    });
    onVerdict(undefined);
    if (changes.length === 0) log.info({}, 'configuration unchanged, certificates and secrets read again');
    else log.info({ changes }, 'configuration changed');
    this.#current = config;
    await this.#offer({ config, connection });
  }

  async #offer(prepared: Prepared<Made>): Promise<void> {
    await this.#found?.connection.close();
    const report = this.#report;
    this.#report = undefined;
    this.#found = report === undefined ? prepared : undefined;
    report?.(prepared);
  }

  #refuse(reason: string, isAsked: boolean): void {
    if (reason === this.#refused && !isAsked) return;
    this.#refused = reason;
    this.#options.log.error({ code: 'config', err: reason }, 'reload refused, old configuration kept');
    this.#options.onVerdict(reason);
  }
}
