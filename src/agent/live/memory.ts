/** What is remembered of one live file from poll to poll, for as long as this process follows its job. */
import type { BackOff } from '../../back-off.ts';
import type { JobtailError } from '../../errors.ts';
import { Symptoms } from './debounce.ts';

export class FileMemory {
  readonly symptoms: Symptoms;
  #raw: RawTries | undefined;
  /** The last poll, if it changed nothing. */
  quiet: QuietPoll | undefined;
  /** The start of a long text did not suffice, so all of it is requested. */
  wantsWholeText = false;
  /** The last poll failed for this file alone; the file is requested again after the pause. */
  failed: { readonly error: JobtailError; readonly pause: BackOff } | undefined;

  /** `monotonic`: a clock in milliseconds. */
  constructor(monotonic: () => number) {
    this.symptoms = new Symptoms(monotonic);
  }

  get raw(): RawTries {
    this.#raw ??= {
      at: Number.NEGATIVE_INFINITY,
      firstMs: 0,
      shownEnd: undefined,
      refusals: 0,
      unchanged: 0,
      isRefused: false,
      reason: '',
      path: undefined,
      isForDirect: false,
    };
    return this.#raw;
  }
}

interface RawTries {
  /** The time of the last request, in milliseconds. */
  at: number;
  /** The pause after it, in milliseconds; failures lengthen it. */
  firstMs: number;
  /** Where the text ended that was to prove its bytes: another end shows that the file changed. */
  shownEnd: number | undefined;
  /** Consecutive refusals, but those of a last pass. */
  refusals: number;
  /** Consecutive downloads that showed that the mirror has all bytes. */
  unchanged: number;
  /** Whether the last request was refused, and the reason. */
  isRefused: boolean;
  reason: string;
  /** The path that was proven. */
  path: string | undefined;
  /** The service failed to send the file, or cannot send its text: it comes by direct transfer, where that is open. */
  isForDirect: boolean;
}

export interface QuietPoll {
  readonly offset: number;
  /** The text of the response, one character a byte; null if the file did not exist. */
  readonly text: string | null;
  readonly end: 'current' | 'absent';
}
