/**
 * Long backlogs of which the mirror has next to nothing. Where the service could not decode all of one, two readings of
 * its text would be needed; the beginning of one is enough to take the raw bytes instead, once (docs/servers.md 1.5).
 */
import { keyText } from '../../../job.ts';
import type { LiveFile } from '../mirror/live-file.ts';

/** Text of a backlog that is long. */
const LONG_BYTES = 16 * 1024 * 1024;
/** A mirror of this part of it is next to nothing: raw bytes begin with the file. */
const MIRRORED_PART = 1 / 256;
/** What of the text is enough once it is known to be long: that of the mirror, three times as long at most, and more. */
const ENOUGH_PART = 1 / 16;

export class Backlogs {
  readonly #longBytes: number;
  /** Files of a job of which the beginning of the text led to nothing. */
  readonly #whole = new Set<string>();

  constructor(longBytes = LONG_BYTES) {
    this.#longBytes = longBytes;
  }

  /** Bytes of text that are enough for now; undefined if all of it is wanted. `isLong`: an answer before was long. */
  enoughOf(file: LiveFile, isLong: boolean): number | undefined {
    const isWhole = this.#whole.has(keyText(file.key));
    if (isWhole || file.length > MIRRORED_PART * this.#longBytes) return undefined;
    return isLong ? ENOUGH_PART * this.#longBytes : this.#longBytes;
  }

  /** From now on, all of the text is wanted. */
  wantWhole(file: LiveFile): void {
    this.#whole.add(keyText(file.key));
  }
}
