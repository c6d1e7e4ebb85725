/** One live file in a poll: its requests, their responses, how it ends, and what is remembered for the next poll. */
import { BackOff } from '../../back-off.ts';
import { REPLACEMENT } from '../../bytes.ts';
import { asJobtailError, EXIT, JobtailError } from '../../errors.ts';
import { keyText } from '../../job.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import type { RawBytes } from '../live/append/raw-bytes.ts';
import { follow } from '../live/follow.ts';
import type { FileMemory, QuietPoll } from '../live/memory.ts';
import type { LiveFile } from '../live/mirror/live-file.ts';
import type { LiveFileOptions } from '../live/mirror/mirror.ts';
import { openLiveFile } from '../live/mirror/open-live-file.ts';
import type { FollowEnd, PollMode } from '../live/steps.ts';
import type { TextDecoding } from '../live/text/decoding.ts';
import type { Part } from '../ports/server.ts';
import type { FileWaits } from './loader.ts';

export interface FilePollContext {
  readonly decoding: TextDecoding;
  readonly rawBytes: RawBytes;
  readonly liveFiles: LiveFileOptions;
  /** Bytes of text that make a backlog a long one. */
  readonly longBacklogBytes: number;
  /** Monotonic clock, in milliseconds. */
  readonly monotonic: () => number;
}

/** Repeated requests for one broken file load the service, so the pause doubles. */
const PAUSES = { firstMs: 1_000, maxMs: 30 * 60_000, random: () => 1 };

/** A longer text is downloaded raw. A file six times as long costs at most 1.5 times its raw bytes. */
export const LONG_BACKLOG_BYTES = 64 * 1024;
export class FilePoll {
  readonly name: string;
  readonly row: LiveFileRow;
  end: FollowEnd | undefined;
  error: JobtailError | undefined;
  /** Undefined as long as the file is quiet. */
  mirror: LiveFile | undefined;
  readonly #memory: FileMemory;
  readonly #context: FilePollContext & PollMode;
  readonly #exchanges: Exchange[] = [];

  constructor(row: LiveFileRow, memory: FileMemory, context: FilePollContext & PollMode) {
    this.name = keyText(row);
    this.row = row;
    this.#memory = memory;
    this.#context = context;
  }

  /** One file fails by itself; a stop, or a failure of the state or the lease, ends the whole poll. */
  async follow(waits: FileWaits): Promise<void> {
    const { isFinal, signal } = this.#context;
    const { failed } = this.#memory;
    try {
      signal.throwIfAborted();
      if (!isFinal && failed !== undefined && failed.pause.remainingMs > 0) throw failed.error;
      this.end = await this.#follow(waits);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.policy.endsPoll) throw error;
      this.error = error;
    }
  }

  /** Commits what was appended so far. If that fails, the file fails by itself, where it waits. */
  async commitAppended(): Promise<void> {
    await this.#guardEnd(async () => void (await this.mirror?.commitAppended()));
    if (this.error?.policy.endsPoll) throw this.error;
  }

  /** Flushes appended bytes and releases the texts and the mirror; never rejects. */
  async close(): Promise<void> {
    if (this.#hasBeginning && (this.end === 'raw' || this.end === 'unclear')) this.#memory.wantsWholeText = true;
    else if (this.mirror !== undefined && this.mirror.length > 0) this.#memory.wantsWholeText = false;
    await this.#guardEnd(async () => void (await this.mirror?.flushToRow()));
    await this.#guardEnd(() => this.#noteQuiet());
    this.#noteFailure();
    this.#noteStuck();
    for (const { part } of this.#exchanges) await this.#guardEnd(async () => part?.content.release());
    await this.#guardEnd(async () => this.mirror?.close());
  }

  async #follow(waits: FileWaits): Promise<FollowEnd> {
    const { isFinal, liveFiles, rawBytes } = this.#context;
    const { quiet } = this.#memory;
    // U+FFFD at the end may stand for more bytes than before: only raw bytes show them.
    const isHidden = quiet?.text?.endsWith(REPLACEMENT.toString('latin1')) === true;
    const mayHide = isHidden && rawBytes.isDue(this.#memory, isFinal);
    const { rotation, inexact } = this.row;
    const isQuiet =
      !isFinal &&
      quiet !== undefined &&
      !mayHide &&
      rotation === null &&
      inexact.length === 0 &&
      (await liveFiles.mirrors.isAsLeft(this.row));
    // The request of a quiet poll: if the response is the same, the poll ends in the same way.
    const received = isQuiet ? { offset: quiet.offset, part: await this.#load(waits, quiet.offset) } : undefined;
    if (isQuiet && (await isSamePart(quiet, received?.part, this.row))) return quiet.end;
    this.#memory.quiet = undefined;
    this.mirror = await openLiveFile(this.row, this.#memory, liveFiles);
    let first = received;
    const at = async (offset: number) => {
      const part = first?.offset === offset ? first.part : await this.#load(waits, offset);
      first = undefined;
      return part;
    };
    const waitForCommit = async () => {
      await waits.waitForCommit();
      if (this.error !== undefined) throw this.error;
    };
    return await follow(this.mirror, { ...this.#context, parts: { at, waitForCommit } });
  }

  async #load(waits: FileWaits, offset: number): Promise<Part | undefined> {
    const { taskId, file } = this.row;
    const batch = await waits.load({ taskId, file, offset, enoughBytes: this.#enoughBytes });
    const part = batch.parts.get(this.name);
    this.#exchanges.push({ offset, part });
    if (this.error !== undefined) throw this.error;
    this.#context.signal.throwIfAborted();
    const error = batch.errors.get(this.name);
    // The first response may be a text that is too long to be sent: then the raw bytes are downloaded.
    const isTooLong = part?.isBeginning === true && this.#exchanges.length === 1;
    if (error !== undefined && !isTooLong) throw error;
    return part;
  }

  get #hasBeginning(): boolean {
    return this.#exchanges.some(({ part }) => part?.isBeginning === true);
  }

  /** Bytes of text that suffice for now: a long backlog is downloaded raw. Undefined if all of it is needed. */
  get #enoughBytes(): number | undefined {
    const { isFinal, longBacklogBytes } = this.#context;
    return isFinal || this.mirror?.length !== 0 || this.#memory.wantsWholeText ? undefined : longBacklogBytes;
  }

  /** At the end, one failure does not prevent the other releases. */
  async #guardEnd(work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) => {
      this.error ??= asJobtailError(error);
      this.end = undefined;
    });
  }

  /** Remembers a poll of one request that found all bytes in the mirror, or no file. */
  async #noteQuiet(): Promise<void> {
    const [exchange, ...more] = this.#exchanges;
    if (this.#context.isFinal || this.mirror === undefined || this.mirror.changed) return;
    if (exchange === undefined || more.length > 0 || (this.end !== 'current' && this.end !== 'absent')) return;
    const { offset, part } = exchange;
    if (part !== undefined && part.content.length > MAX_QUIET_BYTES) return;
    this.#memory.quiet = { offset, text: await textOf(part), end: this.end };
  }

  /** Requests for a file that fails are repeated with back-off. */
  #noteFailure(): void {
    const { error } = this;
    // A complete pass does not wait, so it sets no pause.
    if (this.#exchanges.length === 0 || this.#context.isFinal) return;
    if (error === undefined || error.policy.exitCode === EXIT.local) {
      this.#memory.failed = undefined;
      return;
    }
    const pause = this.#memory.failed?.pause ?? new BackOff({ ...PAUSES, nowMs: this.#context.monotonic });
    pause.lengthen();
    this.#memory.failed = { error, pause };
  }

  /** Reports a file as stuck whose polls leave work undone for a minute without progress. */
  #noteStuck(): void {
    const { mirror, end } = this;
    const { symptoms, raw } = this.#memory;
    const reason = end && REASONS[end];
    if (mirror === undefined || this.error !== undefined) return;
    if (reason === undefined) symptoms.clear('stuck');
    if (reason === undefined || !symptoms.hasPersisted('stuck', mirror.length)) return;
    this.end = undefined;
    const because = end === 'unclear' || raw.reason === '' ? '' : `: ${raw.reason}`;
    this.error = new JobtailError('stuck', `no progress: ${reason}${because}`, {
      hint: 'run `agent verify` to compare the mirror with raw bytes; if it differs, report this message',
    });
  }
}

/** A longer response is not kept. */
const MAX_QUIET_BYTES = 4 * 1024;

/** Whether a part is that of the quiet poll. */
async function isSamePart({ text }: QuietPoll, part: Part | undefined, row: LiveFileRow): Promise<boolean> {
  if (part === undefined) return text === null;
  if (part.isBeginning) return false;
  if (part.content.length !== text?.length || part.relativePath !== row.relativePath) return false;
  return (await textOf(part)) === text;
}

async function textOf(part: Part | undefined): Promise<string | null> {
  return part === undefined ? null : (await part.content.read(0, part.content.length)).toString('latin1');
}

/** One request of a poll and its response; undefined if the file does not exist. */
interface Exchange {
  readonly offset: number;
  readonly part: Part | undefined;
}

/** Why a poll with this end left work undone. */
const REASONS: Partial<Record<FollowEnd, string>> = {
  raw: 'the text does not show the next bytes',
  unclear: 'responses from different offsets contradict each other',
};
