/** One live file in a poll: its requests, their responses, its outcome, and what is remembered for the next poll. */
import { BackOff } from '../../back-off.ts';
import { asJobtailError, EXIT, JobtailError } from '../../errors.ts';
import { keyText } from '../../job.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import { catchUp, type PollOutcome } from '../live/catch-up.ts';
import type { FileMemory, QuietPoll } from '../live/memory.ts';
import type { LiveFile } from '../live/mirror/live-file.ts';
import type { LiveFileOptions } from '../live/mirror/mirror.ts';
import { openLiveFile } from '../live/mirror/open-live-file.ts';
import type { RawBytes } from '../live/raw-bytes.ts';
import type { BytesRange, BytesRequest, LiveBytes, LiveResponses, LiveSource } from '../ports/live-source.ts';

/** What a file waits for. Both reject with `aborted` if the poll fails meanwhile. */
export interface FileWaits {
  /** The next call, which carries this request. The file releases its response. */
  load(request: BytesRequest): Promise<LiveResponses>;
  /** That each other file waits as well, and what was appended is committed; then one file goes on at a time. */
  waitForCommit(): Promise<void>;
}

/** What the files of one poll share. */
interface OnePoll {
  readonly source: LiveSource;
  readonly rawBytes: RawBytes;
  readonly liveFiles: LiveFileOptions;
  readonly isFinal: boolean;
  readonly signal: AbortSignal;
  /** Monotonic clock, in milliseconds. */
  readonly monotonic: () => number;
}

/** Repeated requests for one broken file load the service, so the pause doubles. */
const PAUSES = { firstMs: 1_000, maxMs: 30 * 60_000, random: () => 1 };

export class FilePoll {
  readonly name: string;
  readonly row: LiveFileRow;
  outcome: PollOutcome | undefined;
  error: JobtailError | undefined;
  /** Undefined as long as the file is quiet. */
  mirror: LiveFile | undefined;
  readonly #memory: FileMemory;
  readonly #context: OnePoll;
  readonly #requests: { readonly request: BytesRequest; readonly response: LiveBytes | undefined }[] = [];

  constructor(row: LiveFileRow, memory: FileMemory, context: OnePoll) {
    this.name = keyText(row);
    this.row = row;
    this.#memory = memory;
    this.#context = context;
  }

  /** One file fails by itself; a stop, or a failure of the state or the lease, ends the whole poll. */
  async run(waits: FileWaits): Promise<void> {
    const { isFinal, signal } = this.#context;
    const { failed } = this.#memory;
    try {
      signal.throwIfAborted();
      if (!isFinal && failed !== undefined && failed.pause.remainingMs > 0) throw failed.error;
      this.outcome = await this.#run(waits);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.policy.endsPoll) throw error;
      this.error = error;
    }
  }

  /** Commits what was appended so far. If that fails, the file fails by itself, where it waits. */
  async commitAppended(): Promise<void> {
    await this.#guard(async () => void (await this.mirror?.commitAppended()));
    if (this.error?.policy.endsPoll) throw this.error;
  }

  /** Flushes appended bytes and releases the responses and the mirror; never rejects. */
  async close(): Promise<void> {
    await this.#guard(async () => void (await this.mirror?.flushToRow()));
    this.#noteQuiet();
    this.#noteFailure();
    this.#noteStuck();
    for (const { response } of this.#requests) await this.#guard(async () => response?.release());
    await this.#guard(async () => this.mirror?.close());
  }

  async #run(waits: FileWaits): Promise<PollOutcome> {
    const { source, rawBytes, isFinal, liveFiles } = this.#context;
    const { quiet } = this.#memory;
    // Bytes that are not shown may be more than before: only raw bytes show them.
    const mayHide = quiet?.isEndCertain === false && rawBytes.isDue(this.#memory, isFinal);
    const isQuiet = quiet !== undefined && !isFinal && !mayHide && this.row.rotation === null;
    let first: LiveBytes | undefined | null = null;
    if (isQuiet && (await liveFiles.mirrors.isAsLeft(this.row))) {
      // The request of a quiet poll: if the response is the same, so is the outcome.
      const { from, known, sameness } = quiet;
      first = await this.#load(waits, { from, known, isThorough: false, sameAs: sameness ?? undefined });
      if (isSame(quiet, first, this.row)) return quiet.outcome;
    }
    this.#memory.quiet = undefined;
    this.mirror = await openLiveFile(this.row, this.#memory, liveFiles);
    return await catchUp(this.mirror, {
      source,
      rawBytes,
      isFinal,
      request: async (range) => {
        // Another process may have changed the mirror before it was opened.
        const isAlike = quiet?.from === range.from && quiet.known === range.known && !range.isThorough;
        const received = isAlike ? first : null;
        first = null;
        return received === null ? await this.#load(waits, range) : received;
      },
      waitForCommit: async () => {
        await waits.waitForCommit();
        if (this.error !== undefined) throw this.error;
      },
    });
  }

  async #load(waits: FileWaits, range: BytesRange): Promise<LiveBytes | undefined> {
    const { taskId, file, listedName } = this.row;
    const request = { taskId, file, listedName, ...range };
    const found = (await waits.load(request)).files.get(this.name);
    const response = found instanceof JobtailError ? undefined : found;
    this.#requests.push({ request, response });
    this.#context.signal.throwIfAborted();
    if (found instanceof JobtailError) throw found;
    return response;
  }

  /** At the end, one failure does not prevent the other releases. */
  async #guard(work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) => {
      this.error ??= asJobtailError(error);
      this.outcome = undefined;
    });
  }

  /** Remembers a poll of one request that found all bytes in the mirror, or no file. */
  #noteQuiet(): void {
    const { outcome, mirror } = this;
    const [only, ...more] = this.#requests;
    if (this.#context.isFinal || mirror === undefined || mirror.changed) return;
    if (only === undefined || more.length > 0 || (outcome !== 'current' && outcome !== 'absent')) return;
    const { request, response } = only;
    const { from, known } = request;
    const sameness = response === undefined ? null : response.sameness;
    if (sameness !== undefined)
      this.#memory.quiet = { from, known, sameness, isEndCertain: response?.isEndCertain ?? true, outcome };
  }

  /** Requests for a file that fails are repeated with back-off. */
  #noteFailure(): void {
    const { error, outcome } = this;
    if (this.#requests.length === 0) return;
    if (outcome !== undefined || error?.policy.exitCode === EXIT.local) this.#memory.failed = undefined;
    // A complete pass does not wait, so it sets no pause.
    if (error === undefined || error.policy.exitCode === EXIT.local || this.#context.isFinal) return;
    const pause = this.#memory.failed?.pause ?? new BackOff({ ...PAUSES, nowMs: this.#context.monotonic });
    pause.lengthen();
    this.#memory.failed = { error, pause };
  }

  /** Reports a file as stuck whose polls leave work undone for a minute without progress. */
  #noteStuck(): void {
    const { mirror, outcome } = this;
    const { symptoms, raw } = this.#memory;
    // Raw bytes that came last time come again after their pause, which grows with the file.
    const isInPause = outcome === 'raw-unavailable' && raw.reason === '';
    const reason = isInPause ? undefined : outcome && REASONS[outcome];
    if (mirror === undefined || this.error !== undefined) return;
    if (reason === undefined) symptoms.clear('stuck');
    if (reason === undefined || !symptoms.note('stuck', mirror.length)) return;
    this.outcome = undefined;
    const because = outcome === 'unclear' ? '' : `: ${raw.reason}`;
    this.error = new JobtailError('stuck', `the mirror ends at byte ${mirror.length}: ${reason}${because}`, {
      hint: 'run `agent verify` to compare the mirror with raw bytes; if it differs, report this message',
    });
  }
}

/** Whether a response is that of the quiet poll. */
function isSame({ sameness }: QuietPoll, response: LiveBytes | undefined, { relativePath }: LiveFileRow): boolean {
  if (response === undefined) return sameness === null;
  return response.sameness === sameness && response.relativePath === relativePath;
}

/** Why a poll with this outcome left work undone. */
const REASONS: Partial<Record<PollOutcome, string>> = {
  'raw-unavailable': 'the service does not show what follows, and there are no raw bytes',
  unclear: 'responses from different offsets contradict each other',
};
