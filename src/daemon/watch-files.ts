/**
 * Reports soon that one of some files was written, replaced or created. chokidar reports most changes within
 * milliseconds, or by polling on network file systems, which do not notify of changes made elsewhere.
 *
 * In addition, each file is checked once a second, for changes that chokidar 5.0.0 alone did not report
 * (test/daemon/watch-files.test.ts has the cases): a file in a directory that is made later, or made anew; a link above
 * the file, or the file as a link, that is swapped while the old target stays; a directory above that is replaced; a
 * write within 5 ms of another; when polling, a file that is replaced by one that is no newer and as long; and what the
 * system dropped because too much happened at once.
 */
import fs from 'node:fs';
import path from 'node:path';
import { type FSWatcher, watch } from 'chokidar';
import type { Log } from '../agent/ports.ts';
import type { Config } from '../config/config.ts';
import { isOnNetworkFileSystem } from '../store/database.ts';

export interface FileWatchOptions {
  /** Whether a file is on a network file system. */
  readonly isPolled: (file: string) => boolean;
  /** May be called more than once for one change. */
  readonly onChange: (file: string) => void;
  /** The system has no watch left for a file, which is polled from now on. */
  readonly onRefused: (file: string, error: Error) => void;
}

const TICK_MS = 1_000;
const POLLING_MS = 500;

export class FileWatch {
  readonly #options: FileWatchOptions;
  readonly #watched = new Map<string, WatchedFile>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: FileWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#watched.forEach((each) => void each.look()), TICK_MS);
  }

  /**
   * Watches these files: absolute paths; neither a file nor its directory need be there yet. From now on no change is
   * missed, also none of those that were watched before.
   */
  watch(files: readonly string[]): void {
    const { isPolled, onChange, onRefused } = this.#options;
    for (const [file, watched] of this.#watched) {
      if (files.includes(file)) continue;
      watched.close();
      this.#watched.delete(file);
    }
    for (const file of files) {
      if (this.#watched.has(file)) continue;
      this.#watched.set(file, new WatchedFile(file, { isPolled: isPolled(file), onChange, onRefused }));
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.watch([]);
  }
}

interface WatchedFileOptions extends Pick<FileWatchOptions, 'onChange' | 'onRefused'> {
  readonly isPolled: boolean;
}

/** One watcher a file: chokidar waits for the return of a removed file only if it watches nothing else. */
class WatchedFile {
  readonly #file: string;
  readonly #options: WatchedFileOptions;
  #isPolled: boolean;
  #watcher: FSWatcher | undefined;
  #seen: string;
  #isLooking = false;
  #isClosed = false;

  constructor(file: string, options: WatchedFileOptions) {
    this.#file = file;
    this.#options = options;
    this.#isPolled = options.isPolled;
    this.#seen = stampOf(statIfThere(file));
    this.#begin();
  }

  /**
   * Checks for changes that the watcher did not report; it must be started again then, because it watches another file.
   */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const stamp = await this.#stamp();
    this.#isLooking = false;
    if (stamp === this.#seen || this.#isClosed) return;
    this.#begin();
    this.#seen = stamp;
    this.#options.onChange(this.#file);
  }

  close(): void {
    this.#isClosed = true;
    void this.#watcher?.close();
  }

  #begin(): void {
    void this.#watcher?.close();
    const watcher = watch(this.#file, {
      usePolling: this.#isPolled,
      interval: POLLING_MS,
      binaryInterval: POLLING_MS,
      ignoreInitial: true,
      atomic: false,
    });
    watcher.on('all', () => void this.#changed());
    // What changed before the watcher was ready.
    watcher.on('ready', () => void this.look());
    watcher.on('error', (error) => this.#refused(watcher, error as Error));
    this.#watcher = watcher;
  }

  async #changed(): Promise<void> {
    // What changes behind this is another change.
    const stamp = await this.#stamp();
    if (this.#isClosed) return;
    this.#seen = stamp;
    this.#options.onChange(this.#file);
  }

  #refused(watcher: FSWatcher, error: Error): void {
    if (watcher !== this.#watcher || this.#isPolled || this.#isClosed) return;
    this.#isPolled = true;
    this.#begin();
    this.#options.onRefused(this.#file, error);
  }

  /** Not in the loop: a network file system may hang. */
  async #stamp(): Promise<string> {
    return stampOf(await fs.promises.stat(this.#file, EXACT).catch(() => undefined));
  }
}

const EXACT = { bigint: true } as const;

function statIfThere(file: string): fs.BigIntStats | undefined {
  try {
    return fs.statSync(file, EXACT);
  } catch {
    return undefined;
  }
}

/** What is another when a file was written, replaced, made or removed, or its rights were changed. */
function stampOf(stat: fs.BigIntStats | undefined): string {
  if (stat === undefined) return '';
  const { dev, ino, size, mtimeNs, ctimeNs } = stat;
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
}

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
  #reporterOf: ReadonlyMap<string, () => void> = new Map();
  #isRefused = false;
  #secretTimer: NodeJS.Timeout | undefined;

  constructor(options: WatchedFilesOptions) {
    this.#options = options;
    this.#watch = new FileWatch({
      isPolled: isOnNetwork,
      onChange: (file) => this.#reporterOf.get(file)?.(),
      onRefused: (file, error) => this.#refused(file, error),
    });
  }

  /** Watches what belongs to these configurations, and nothing else. */
  cover(configs: readonly Config[]): void {
    const { configFile, wakeFile, onWake, onConfig } = this.#options;
    const reporterOf = new Map<string, () => void>();
    for (const config of configs) {
      for (const file of secretFilesOf(config)) reporterOf.set(file, () => this.#secretChanged());
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

  #refused(file: string, error: Error): void {
    if (this.#isRefused) return;
    this.#isRefused = true;
    const hint = 'raise fs.inotify.max_user_watches and fs.inotify.max_user_instances (sysctl)';
    const fields = { scope: 'watching files', file, err: error.message, hint };
    this.#options.log.warn(fields, 'cannot watch a file, polling such files');
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
