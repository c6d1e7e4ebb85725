/** The files that a running agent watches: its configuration, the wake-up file, and the secrets and certificates. */
import path from 'node:path';
import type { Log } from '../agent/ports.ts';
import type { Config } from '../config/config.ts';
import { isOnNetworkFileSystem } from '../store/database.ts';
import { FileWatch } from './watch-files.ts';

export interface WatchedFilesOptions {
  readonly configFile: string;
  readonly wakeFile: string;
  readonly log: Log;
  readonly onWake: () => void;
  /** The configuration may have changed; `asked`: the connection is to be made anew even if it has not. */
  readonly onConfig: (options: { readonly asked: boolean }) => void;
  readonly onSecret: () => void;
}

/** A secret that is written in several steps is read when it was left alone for so long: half of one is a wrong one. */
const QUIET_MS = 200;

export class WatchedFiles {
  readonly #options: WatchedFilesOptions;
  readonly #watch: FileWatch;
  #tellOf: ReadonlyMap<string, () => void> = new Map();
  #isRefused = false;
  #secretTimer: NodeJS.Timeout | undefined;

  constructor(options: WatchedFilesOptions) {
    this.#options = options;
    this.#watch = new FileWatch({
      isPolled: isOnNetwork,
      onChange: (file) => this.#tellOf.get(file)?.(),
      onRefused: (file, error) => this.#refused(file, error),
    });
  }

  /** Watches what belongs to these configurations, and nothing else. */
  cover(configs: readonly Config[]): void {
    const { configFile, wakeFile, onWake, onConfig } = this.#options;
    const tellOf = new Map<string, () => void>();
    for (const config of configs) {
      for (const file of secretFilesOf(config)) tellOf.set(file, () => this.#secretChanged());
      const { caFile, certFile, keyFile } = config.service.tls;
      for (const file of [caFile, certFile, keyFile])
        if (file !== null) tellOf.set(file, () => onConfig({ asked: true }));
    }
    this.#tellOf = tellOf.set(configFile, () => onConfig({ asked: false })).set(wakeFile, onWake);
    this.#watch.watch([...tellOf.keys()]);
  }

  close(): void {
    this.#watch.close();
    clearTimeout(this.#secretTimer);
  }

  #secretChanged(): void {
    clearTimeout(this.#secretTimer);
    this.#secretTimer = setTimeout(this.#options.onSecret, QUIET_MS);
  }

  #refused(file: string, error: Error): void {
    if (this.#isRefused) return;
    this.#isRefused = true;
    const hint = 'raise fs.inotify.max_user_watches and fs.inotify.max_user_instances (sysctl)';
    const fields = { scope: 'watching files', err: error.message, hint };
    this.#options.log.warn(
      fields,
      `the system refuses to watch ${file}: such files are looked at twice a second instead`,
    );
  }
}

/** Where the secret of the sign-in is read from; a program's is not known. */
function secretFilesOf({ auth: { secret } }: Config): string[] {
  const credentials = process.env['CREDENTIALS_DIRECTORY'];
  if (secret.kind === 'file') return [secret.path];
  return secret.kind === 'credential' && credentials ? [path.resolve(credentials, secret.name)] : [];
}

function isOnNetwork(file: string): boolean {
  try {
    return isOnNetworkFileSystem(path.dirname(file));
  } catch {
    // There is no such directory yet.
    return false;
  }
}
