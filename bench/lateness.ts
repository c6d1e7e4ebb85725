/** When each line came to its mirror, against when the middleware had it. */
import fs from 'node:fs';
import { LINE_BYTES } from './growth.ts';

/** How the files of a middleware grow, by whole lines. */
export interface Growth {
  /** Wall-clock milliseconds. */
  readonly startedAt: number;
  /** At that time. */
  readonly fileBytes: number;
  readonly bytesPerSecond: number;
}

/** How late lines were, in milliseconds. */
interface LateFigures {
  readonly [figure: string]: number;
  readonly lines: number;
  readonly medianMs: number;
  readonly latest99Ms: number;
}

export class Lateness {
  readonly #watchers: fs.FSWatcher[];
  readonly #lateMs: number[] = [];

  constructor({ startedAt, fileBytes, bytesPerSecond }: Growth, mirrors: readonly string[]) {
    this.#watchers = mirrors.map((file) => {
      let known = fs.statSync(file).size;
      return fs.watch(file, () => {
        const now = performance.timeOrigin + performance.now();
        const { size } = fs.statSync(file);
        for (let end = known + LINE_BYTES; end <= size; end += LINE_BYTES) {
          this.#lateMs.push(now - (startedAt + ((end - fileBytes) / bytesPerSecond) * 1000));
        }
        known = Math.max(known, size);
      });
    });
  }

  end(): LateFigures {
    for (const watcher of this.#watchers) watcher.close();
    const sorted = this.#lateMs.toSorted((a, b) => a - b);
    const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
    return { lines: sorted.length, medianMs: at(0.5), latest99Ms: at(0.99) };
  }
}
