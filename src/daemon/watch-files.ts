/**
 * Reports that one of some files was written, replaced, created or removed. Each is checked when chokidar notices
 * something, and twice a second: the kernel reports no change on a network file system, behind a link that is swapped,
 * in a directory that is made later, or where inotify has no watch left.
 */
import fs from 'node:fs';
import { type FSWatcher, watch } from 'chokidar';
import { secretFileOf } from '../auth.ts';
import type { Config } from '../config/config.ts';
import { EXACT, stampOf } from '../system/files.ts';

export class FileWatch {
  /** What was seen of each file. */
  readonly #seen = new Map<string, string>();
  #reporterOf: ReadonlyMap<string, () => void> = new Map();
  #timer: NodeJS.Timeout | undefined;
  #watcher: FSWatcher | undefined;
  /** Checks that hang, on a network file system, delay none of other files. */
  readonly #checking = new Set<string>();

  /** Watches absolute paths, which need not exist yet. From now on no change is missed, nor one of those before. */
  watch(reporterOf: ReadonlyMap<string, () => void>): void {
    this.#reporterOf = reporterOf;
    const files = [...reporterOf.keys()];
    for (const file of this.#seen.keys()) if (!reporterOf.has(file)) this.#seen.delete(file);
    for (const file of files) if (!this.#seen.has(file)) this.#seen.set(file, stampOf(statIfThere(file)));
    clearInterval(this.#timer);
    void this.#watcher?.close();
    if (files.length === 0) return;
    this.#timer = setInterval(() => this.#check(), CHECK_MS);
    this.#watcher = watch(files)
      .on('all', () => this.#check())
      // The system has no watch left: the next check comes half a second later at most.
      .on('error', () => {});
  }

  close(): void {
    this.watch(new Map());
  }

  #check(): void {
    for (const file of this.#seen.keys()) if (!this.#checking.has(file)) void this.#checkOne(file);
  }

  async #checkOne(file: string): Promise<void> {
    this.#checking.add(file);
    const stamp = await stampNow(file);
    this.#checking.delete(file);
    if ((this.#seen.get(file) ?? stamp) === stamp) return;
    this.#seen.set(file, stamp);
    this.#reporterOf.get(file)?.();
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

interface Reporters {
  readonly onWake: () => void;
  /** The configuration may have changed; `asked`: the connection is to be made anew even if it has not. */
  readonly onConfig: (options: { readonly asked: boolean }) => void;
  readonly onSecret: () => void;
}

/** A secret that is written in several steps is read when it was left alone for so long: half of one is a wrong one. */
const QUIET_MS = 200;

/** What belongs to these configurations, for `FileWatch`. */
export function watchedFiles(
  configs: readonly Config[],
  wakeFile: string,
  { onWake, onConfig, onSecret }: Reporters,
): ReadonlyMap<string, () => void> {
  const reporterOf = new Map([[wakeFile, onWake]]);
  let secretTimer: NodeJS.Timeout | undefined;
  const secretChanged = () => {
    clearTimeout(secretTimer);
    secretTimer = setTimeout(onSecret, QUIET_MS).unref();
  };
  for (const { auth, service, notify, file } of configs) {
    for (const one of filesIn([service, notify])) reporterOf.set(one, () => onConfig({ asked: true }));
    const secretFile = secretFileOf(auth.secret, process.env);
    if (secretFile !== undefined) reporterOf.set(secretFile, secretChanged);
    reporterOf.set(file, () => onConfig({ asked: false }));
  }
  return reporterOf;
}

/** The files that a section of the configuration names, at any depth: their keys end with `File`. */
function filesIn(section: unknown): string[] {
  if (typeof section !== 'object' || section === null) return [];
  return Object.entries(section).flatMap(([key, value]) =>
    key.endsWith('File') && typeof value === 'string' ? [value] : filesIn(value),
  );
}
