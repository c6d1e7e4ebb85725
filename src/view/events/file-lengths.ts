/**
 * The lengths of mirrors that pages show. The kernel reports writes (inotify); where it does not, on a network file
 * system or without a free watch, a mirror is checked five times a second. A mirror that no page looks at is not
 * touched.
 */
import fs from 'node:fs';
import path from 'node:path';
import { type JobId, keyText, type LiveFileKey } from '../../job.ts';
import { liveParts } from '../../safe-names.ts';
import type { Contents } from '../content/contents.ts';
import type { LineIndexes } from '../content/line-index.ts';
import type { FileLength } from '../contract/events.ts';
import { Refused } from '../refused.ts';

interface FileLengthsOptions {
  readonly mirrorDirectory: string;
  readonly onNetwork: boolean;
  readonly contents: Contents;
  readonly indexes: LineIndexes;
  /** Called with the name of a mirror, as the page has it. */
  readonly onChange: (name: string) => void;
}

/** Many writes lead to one check. */
const GATHER_MS = 30;
const POLLING_MS = 200;
/** For changes without an event: a mirror that is created, or created again. */
const SLOW_TICK_MS = 2_000;

export class FileLengths {
  readonly #options: FileLengthsOptions;
  readonly #watched = new Map<string, WatchedMirror>();

  constructor(options: FileLengthsOptions) {
    this.#options = options;
  }

  /** Watches a mirror; pages that show the same one share its watcher. */
  watch(jobId: JobId, live: LiveFileKey): WatchedMirror {
    const name = `${jobId}/${keyText(live)}`;
    const watched = this.#watched.get(name) ?? new WatchedMirror(this.#options, name, jobId, live);
    this.#watched.set(name, watched);
    watched.pages++;
    return watched;
  }

  /** The last page that showed it is gone. */
  leave(watched: WatchedMirror): void {
    watched.pages--;
    if (watched.pages > 0) return;
    watched.close();
    this.#watched.delete(watched.name);
  }

  /** Mirrors that are watched. */
  get size(): number {
    return this.#watched.size;
  }
}

class WatchedMirror {
  pages = 0;
  /** As the page names it. */
  readonly name: string;
  readonly #options: FileLengthsOptions;
  readonly #jobId: JobId;
  readonly #live: LiveFileKey;
  readonly #file: string;
  readonly #over = new AbortController();
  #watcher: fs.FSWatcher | undefined;
  #inode = 0;
  #gathering: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout;
  #version = '';
  #bytes = 0;

  constructor(options: FileLengthsOptions, name: string, jobId: JobId, live: LiveFileKey) {
    const { mirrorDirectory, onNetwork } = options;
    this.name = name;
    this.#options = options;
    this.#jobId = jobId;
    this.#live = live;
    this.#file = path.join(mirrorDirectory, ...liveParts(jobId, live));
    this.#timer = setInterval(() => this.#check(), onNetwork ? POLLING_MS : SLOW_TICK_MS);
    this.#check();
  }

  /** What was last seen; undefined while there is no mirror. */
  get state(): FileLength | undefined {
    if (this.#version === '') return undefined;
    const { counted } = this.#options.indexes.of(this.#indexKey);
    return { file: this.name, version: this.#version, bytes: this.#bytes, counted };
  }

  close(): void {
    this.#over.abort();
    this.#watcher?.close();
    clearInterval(this.#timer);
    clearTimeout(this.#gathering);
  }

  get #indexKey(): string {
    return `${this.name}/${this.#version}`;
  }

  /** Sees how long it is; what came is counted. */
  #check(): void {
    const { contents, indexes } = this.#options;
    const onChange = () => this.#options.onChange(this.name);
    try {
      const content = contents.open({ jobId: this.#jobId, live: this.#live, version: undefined });
      this.#watch(content.inode);
      const { version, bytes } = content;
      if (version === this.#version && bytes === this.#bytes) {
        content.close();
        return;
      }
      this.#version = version;
      this.#bytes = bytes;
      // Reported when the new bytes are counted, or the first slice of them.
      const { signal } = this.#over;
      indexes.count(this.#indexKey, content, signal, onChange).then(onChange, () => {});
    } catch (error) {
      // It does not exist yet, or the state cannot be read now: the next check may see it.
      if (!(error instanceof Refused)) onChange();
    }
  }

  /** Watches writes to the file at this path. */
  #watch(inode: number): void {
    if (this.#options.onNetwork || inode === this.#inode) return;
    this.#inode = inode;
    this.#watcher?.close();
    try {
      this.#watcher = fs.watch(this.#file, { persistent: false }, () => this.#gather());
      this.#watcher.on('error', () => this.#checkEvery(POLLING_MS));
    } catch {
      this.#checkEvery(POLLING_MS);
    }
    // What came before it was watched.
    this.#gather();
  }

  #checkEvery(ms: number): void {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#check(), ms);
  }

  #gather(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      this.#check();
    }, GATHER_MS);
  }
}
