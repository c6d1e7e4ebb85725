/**
 * Reports that one of some files was written, replaced, created or removed: within milliseconds where chokidar notices
 * it, else at the next check. Each file is checked all the time, for changes that chokidar 5.0.0 alone does not report
 * (test/daemon/watch-files.test.ts has the cases): on a network file system; where inotify has no watch left; in a
 * directory that is made later, or made anew; behind a link that is swapped; and what the system dropped because too
 * much happened at once.
 */
import fs from 'node:fs';
import path from 'node:path';
import { type FSWatcher, watch } from 'chokidar';
import type { Log } from '../agent/ports.ts';
import type { Config } from '../config/config.ts';

export interface FileWatchOptions {
  /** Interval of the checks. */
  readonly checkMs: number;
  /** May be called more than once for one change. */
  readonly onChange: (file: string) => void;
  /** The system has no watch left: the checks alone report changes. */
  readonly onRefused?: (error: Error) => void;
}

export class FileWatch {
  readonly #options: FileWatchOptions;
  /** What was seen of each file. */
  readonly #seen = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #watcher: FSWatcher | undefined;
  #isChecking = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
  }

  /**
   * Watches these files: absolute paths; neither a file nor its directory need be there yet. From now on no change is
   * missed, also none of those that were watched before.
   */
  watch(files: readonly string[]): void {
    const gone = [...this.#seen.keys()].filter((file) => !files.includes(file));
    const fresh = files.filter((file) => !this.#seen.has(file));
    for (const file of gone) this.#seen.delete(file);
    for (const file of fresh) this.#seen.set(file, stampOf(statIfThere(file)));
    if (gone.length + fresh.length > 0) this.#begin();
  }

  close(): void {
    this.watch([]);
  }

  #begin(): void {
    void this.#watcher?.close();
    this.#watcher = undefined;
    clearInterval(this.#timer);
    if (this.#seen.size === 0) return;
    this.#timer = setInterval(() => void this.#check(), this.#options.checkMs);
    const watcher = watch([...this.#seen.keys()], { ignoreInitial: true, atomic: false });
    watcher.on('all', (_, file) => void this.#changed(file));
    // What changed before the watcher was ready.
    watcher.on('ready', () => void this.#check());
    watcher.on('error', (error) => this.#options.onRefused?.(error as Error));
    this.#watcher = watcher;
  }

  async #changed(file: string): Promise<void> {
    // What changes after this is another change.
    const stamp = await stampNow(file);
    if (!this.#seen.has(file)) return;
    this.#seen.set(file, stamp);
    this.#options.onChange(file);
  }

  /** Checks for changes that the watcher did not report: it is started again then, for it watches another file. */
  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const found = await Promise.all([...this.#seen.keys()].map(async (file) => [file, await stampNow(file)] as const));
    this.#isChecking = false;
    const changed = found.filter(([file, stamp]) => (this.#seen.get(file) ?? stamp) !== stamp);
    if (changed.length === 0) return;
    this.#begin();
    for (const [file, stamp] of changed) {
      this.#seen.set(file, stamp);
      this.#options.onChange(file);
    }
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

/** Not in the loop: a network file system may hang. */
const stampNow = async (file: string) => stampOf(await fs.promises.stat(file, EXACT).catch(() => undefined));

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
const CHECK_MS = 500;

export class WatchedFiles {
  readonly #options: WatchedFilesOptions;
  readonly #watch: FileWatch;
  #reporterOf: ReadonlyMap<string, () => void> = new Map();
  #isRefused = false;
  #secretTimer: NodeJS.Timeout | undefined;

  constructor(options: WatchedFilesOptions) {
    this.#options = options;
    this.#watch = new FileWatch({
      checkMs: CHECK_MS,
      onChange: (file) => this.#reporterOf.get(file)?.(),
      onRefused: (error) => this.#refused(error),
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

  #refused(error: Error): void {
    if (this.#isRefused) return;
    this.#isRefused = true;
    const hint = 'raise fs.inotify.max_user_watches and fs.inotify.max_user_instances (sysctl)';
    const fields = { scope: 'watching files', err: error.message, hint };
    this.#options.log.warn(fields, 'cannot watch files, polling them');
  }
}

/** Where the secret of the sign-in is read from; a program's is not known. */
function secretFilesOf({ auth: { secret } }: Config): string[] {
  const credentials = process.env['CREDENTIALS_DIRECTORY'];
  if (secret.kind === 'file') return [secret.path];
  return secret.kind === 'credential' && credentials ? [path.resolve(credentials, secret.name)] : [];
}
