/**
 * Reports that one of some files was written, replaced, created or removed. Each is checked when chokidar notices
 * something, and twice a second: the kernel reports no change on a network file system, behind a link that is swapped,
 * in a directory that is made later, or where inotify has no watch left.
 */
import fs from 'node:fs';
import { type FSWatcher, watch } from 'chokidar';
import type { Config } from '../config/config.ts';
import { EXACT, stampOf } from '../system/files.ts';
import { secretFileOf } from '../system/secret.ts';

/** Calls back with each file that changed. */
export class FileWatch {
  readonly #onChange: (file: string) => void;
  /** What was seen of each file. */
  readonly #seen = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #watcher: FSWatcher | undefined;
  #isChecking = false;

  constructor(onChange: (file: string) => void) {
    this.#onChange = onChange;
  }

  /**
   * Watches these files: absolute paths; neither a file nor its directory need be there yet. From now on no change is
   * missed, also none of those that were watched before.
   */
  watch(files: readonly string[]): void {
    for (const file of this.#seen.keys()) if (!files.includes(file)) this.#seen.delete(file);
    for (const file of files) if (!this.#seen.has(file)) this.#seen.set(file, stampOf(statIfThere(file)));
    clearInterval(this.#timer);
    void this.#watcher?.close();
    this.#watcher = undefined;
    if (files.length === 0) return;
    this.#timer = setInterval(() => void this.#check(), CHECK_MS);
    this.#watcher = watch([...files], { ignoreInitial: true, atomic: false })
      .on('all', () => void this.#check())
      // The system has no watch left: the next check comes half a second later at most.
      .on('error', () => {});
  }

  close(): void {
    this.watch([]);
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const found = await Promise.all([...this.#seen.keys()].map(async (file) => [file, await stampNow(file)] as const));
    this.#isChecking = false;
    for (const [file, stamp] of found) {
      if ((this.#seen.get(file) ?? stamp) === stamp) continue;
      this.#seen.set(file, stamp);
      this.#onChange(file);
    }
  }
}

/** Where chokidar notices nothing, a command that wakes the agent waits for no longer. */
const CHECK_MS = 500;

function statIfThere(file: string): fs.BigIntStats | undefined {
  try {
    return fs.statSync(file, EXACT);
  } catch {
    return undefined;
  }
}

/** Not in the loop: a network file system may hang. */
const stampNow = async (file: string) => stampOf(await fs.promises.stat(file, EXACT).catch(() => undefined));

interface WatchedFilesOptions {
  readonly configFile: string;
  readonly wakeFile: string;
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
  #reporterOf: ReadonlyMap<string, () => void> = new Map();
  #secretTimer: NodeJS.Timeout | undefined;

  constructor(options: WatchedFilesOptions) {
    this.#options = options;
    this.#watch = new FileWatch((file) => this.#reporterOf.get(file)?.());
  }

  /** Watches what belongs to these configurations, and nothing else. */
  cover(configs: readonly Config[]): void {
    const { configFile, wakeFile, onWake, onConfig } = this.#options;
    const reporterOf = new Map<string, () => void>();
    for (const config of configs) {
      const secretFile = secretFileOf(config.auth.secret, process.env);
      if (secretFile !== undefined) reporterOf.set(secretFile, () => this.#secretChanged());
      const { caFile, certFile, keyFile } = config.service.tls;
      for (const file of [caFile, certFile, keyFile])
        if (file !== null) reporterOf.set(file, () => onConfig({ asked: true }));
    }
    this.#reporterOf = reporterOf.set(configFile, () => onConfig({ asked: false })).set(wakeFile, onWake);
    this.#watch.watch([...reporterOf.keys()]);
  }

  close(): void {
    this.#watch.close();
    clearTimeout(this.#secretTimer);
  }

  #secretChanged(): void {
    clearTimeout(this.#secretTimer);
    this.#secretTimer = setTimeout(this.#options.onSecret, QUIET_MS);
  }
}
