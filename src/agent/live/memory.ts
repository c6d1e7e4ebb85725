/** What is remembered of one live file from poll to poll, for as long as this process follows its job. */
import type { BackOff } from '../../back-off.ts';
import type { JobtailError } from '../../errors.ts';
import { Symptoms } from './debounce.ts';

export class FileMemory {
  readonly symptoms: Symptoms;
  readonly raw = new RawTries();
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
}

class RawTries {
  /** The time of the last request, in milliseconds. */
  at = Number.NEGATIVE_INFINITY;
  /** The pause after it, in milliseconds; failures lengthen it. */
  firstMs = 0;
  /** The length of the file by the response that was to prove its bytes: another one shows that the file changed. */
  endOffset: number | undefined;
  /** Consecutive refusals, but those of a last pass. */
  refusals = 0;
  /** Consecutive downloads that showed that the mirror has all bytes. */
  unchanged = 0;
  /** Why there were none at the last request; empty if there were. */
  reason = '';
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
