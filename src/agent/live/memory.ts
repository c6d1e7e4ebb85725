/** What is remembered of one live file from poll to poll, for as long as this process follows its job. */
import type { BackOff } from '../../back-off.ts';
import type { JobtailError } from '../../errors.ts';
import { Symptoms } from './debounce.ts';

export class FileMemory {
  readonly symptoms: Symptoms;
  #raw: RawTries | undefined;
  /** The last poll, if it changed nothing. */
  quiet: QuietPoll | undefined;
  /** The last poll failed for this file alone; the file is requested again after the pause. */
  failed: { readonly error: JobtailError; readonly pause: BackOff } | undefined;

  /** `monotonic`: a clock in milliseconds. */
  readonly monotonic: () => number;
  /** How often in a row the checksum was right though the inode or the time was another one, and when it was last. */
  readonly unsteady = { times: 0, checkedAt: Number.NEGATIVE_INFINITY };

  constructor(monotonic: () => number) {
    this.monotonic = monotonic;
    this.symptoms = new Symptoms(monotonic);
  }

  get raw(): RawTries {
    this.#raw ??= {
      at: Number.NEGATIVE_INFINITY,
      firstMs: 0,
      endOffset: undefined,
      refusals: 0,
      unchanged: 0,
      reason: '',
      compared: undefined,
    };
    return this.#raw;
  }
}

interface RawTries {
  /** The time of the last request, in milliseconds. */
  at: number;
  /** The pause after it, in milliseconds; failures lengthen it. */
  firstMs: number;
  /** The length of the file by the response that was to prove its bytes: another one shows that the file changed. */
  endOffset: number | undefined;
  /** Consecutive refusals, but those of a last pass. */
  refusals: number;
  /** Consecutive downloads that showed that the mirror has all bytes. */
  unchanged: number;
  /** Why there were none at the last request; empty if there were. */
  reason: string;
  /** The response for which raw bytes last showed that the mirror, which had this length then, has all bytes. */
  compared: { readonly from: number; readonly sameness: string | undefined; readonly length: number } | undefined;
}

export interface QuietPoll {
  readonly from: number;
  readonly known: number;
  /** Of the response; null if the file did not exist. */
  readonly sameness: string | null;
  readonly isEndCertain: boolean;
  readonly outcome: 'current' | 'absent';
}
