/** One live file in a poll: its requests, their responses, how it ends, and what is remembered for the next poll. */
import { BackOff } from '../../back-off.ts';
import { asJobtailError, EXIT, JobtailError } from '../../errors.ts';
import { keyText } from '../../job.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import { follow } from '../live/follow.ts';
import type { FileMemory, LiveFile, LiveFileOptions } from '../live/mirror/live-file.ts';
import type { Mirrors } from '../live/mirror/mirror.ts';
import { openLiveFile } from '../live/mirror/open-live-file.ts';
import type { FollowContext, FollowEnd } from '../live/steps.ts';
import type { Follow, Part, PartRequest } from '../ports.ts';
import type { Batch } from './batch.ts';

export interface FilePollContext extends Omit<FollowContext, 'final' | 'hasWholeFiles' | 'signal'> {
  readonly liveFiles: LiveFileOptions;
  /** Bytes of text that make a backlog a long one. */
  readonly longBacklogBytes: number;
  /** Monotonic clock, in milliseconds. */
  readonly monotonic: () => number;
}

export interface FilePollOptions extends Pick<FollowContext, 'final' | 'signal'> {
  readonly hasWholeFiles?: boolean | undefined;
}

/** The memory of one live file from poll to poll, for as long as this process follows its job. It starts empty. */
export interface PollMemory extends FileMemory {
  /** The last poll, if it changed nothing. */
  quiet?: QuietPoll | undefined;
  /** The start of a long text did not suffice, so all of it is requested. */
  wantsWholeText?: boolean;
  /** The last poll failed for this file alone; the file is requested again after the pause. */
  failed?: { readonly error: JobtailError; readonly pause: BackOff } | undefined;
}

/** Repeated requests for one broken file load the service, so the pause doubles. */
const PAUSES = { firstMs: 1_000, maxMs: 30 * 60_000, random: () => 1 };

/** A longer text is downloaded raw. A file six times as long costs at most 1.5 times its raw bytes. */
export const LONG_BACKLOG_BYTES = 64 * 1024;
/** A mirror up to this fraction of a long backlog is negligible: a raw download starts at the beginning of the file. */
const MIRRORED_PART = 1 / 256;
/** The fraction of a long backlog that later responses need, once one showed that the text is long. */
const ENOUGH_PART = 1 / 16;

/** idle: not begun, or the whole poll failed. waits: `resume` receives the response to a request of `offset`. */
type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'waits'; readonly offset: number; readonly resume: (part: Part | undefined) => Promise<State> }
  | { readonly kind: 'ended'; readonly end: FollowEnd }
  | { readonly kind: 'failed'; readonly error: JobtailError };

export class FilePoll {
  readonly name: string;
  readonly row: LiveFileRow;
  readonly #memory: PollMemory;
  readonly #context: FilePollContext & FollowContext;
  readonly #exchanges: Exchange[] = [];
  #state: State = { kind: 'idle' };
  /** Undefined as long as the file is quiet. */
  #opened: { readonly mirror: LiveFile; readonly steps: Follow<FollowEnd> } | undefined;

  constructor(
    row: LiveFileRow,
    memory: PollMemory,
    context: FilePollContext,
    { final, hasWholeFiles = true, signal }: FilePollOptions,
  ) {
    this.name = keyText(row);
    this.row = row;
    this.#memory = memory;
    this.#context = { ...context, final, hasWholeFiles, signal };
  }

  get wantedOffset(): number | undefined {
    return this.#state.kind === 'waits' ? this.#state.offset : undefined;
  }

  get end(): FollowEnd | undefined {
    return this.#state.kind === 'ended' ? this.#state.end : undefined;
  }

  get error(): JobtailError | undefined {
    return this.#state.kind === 'failed' ? this.#state.error : undefined;
  }

  get mirror(): LiveFile | undefined {
    return this.#opened?.mirror;
  }

  request(): PartRequest {
    const { taskId, file } = this.row;
    return { taskId, file, offset: this.wantedOffset ?? 0, enoughBytes: this.#enoughBytes };
  }

  async begin(): Promise<void> {
    const { final, liveFiles } = this.#context;
    const { failed, quiet } = this.#memory;
    await this.#enter(async () => {
      if (!final && failed !== undefined && failed.pause.remainingMs > 0)
        return { kind: 'failed', error: failed.error };
      const isQuiet = !final && quiet !== undefined && (await isUnchanged(this.row, liveFiles.mirrors));
      return isQuiet ? this.#repeat(quiet) : await this.#open();
    });
  }

  /** Takes its part of the responses; from now on it releases that part. */
  take(batch: Batch): void {
    this.#exchanges.push({ offset: this.wantedOffset ?? 0, part: batch.parts.get(this.name) });
  }

  async resume(batch: Batch): Promise<void> {
    const state = this.#state;
    if (state.kind !== 'waits') return;
    const part = batch.parts.get(this.name);
    const error = batch.errors.get(this.name);
    // The first response may be a text that is too long to be sent: then the raw bytes are downloaded.
    const isTooLong = part?.isBeginning === true && this.#exchanges.length === 1;
    await this.#enter(async () => {
      if (error !== undefined && !isTooLong) throw error;
      return await state.resume(part);
    });
  }

  /** Flushes appended bytes and releases the texts and the mirror; never rejects. */
  async close(): Promise<void> {
    // A generator that is not resumed releases what it owns.
    await this.#guardEnd(async () => void (await this.#opened?.steps.return('unclear')));
    if (this.#hasBeginning && this.end !== 'current') this.#memory.wantsWholeText = true;
    await this.#guardEnd(async () => void (await this.mirror?.flushToRow()));
    await this.#guardEnd(() => this.#noteQuiet());
    this.#noteFailure();
    await this.#guardEnd(() => this.#noteStuck());
    for (const { part } of this.#exchanges) await this.#guardEnd(async () => part?.content.release());
    await this.#guardEnd(async () => this.mirror?.close());
  }

  get #hasBeginning(): boolean {
    return this.#exchanges.some(({ part }) => part?.isBeginning === true);
  }

  /** Bytes of text that suffice for now: a long backlog is downloaded raw. Undefined if all of it is needed. */
  get #enoughBytes(): number | undefined {
    const { final, longBacklogBytes } = this.#context;
    if (final || this.mirror === undefined || this.#memory.wantsWholeText === true) return undefined;
    if (this.mirror.length > MIRRORED_PART * longBacklogBytes) return undefined;
    return this.#hasBeginning ? ENOUGH_PART * longBacklogBytes : longBacklogBytes;
  }

  /** Makes the request of a quiet poll. If the response is the same, the poll ends in the same way. */
  #repeat(quiet: QuietPoll): State {
    const { offset, end } = quiet;
    const resume = async (part: Part | undefined): Promise<State> => {
      if (await isSamePart(quiet, part, this.row)) return { kind: 'ended', end };
      const state = await this.#open();
      // It waits for the same response, unless the mirror was changed just now.
      return state.kind === 'waits' && state.offset === offset ? await state.resume(part) : state;
    };
    return { kind: 'waits', offset, resume };
  }

  async #open(): Promise<State> {
    this.#memory.quiet = undefined;
    const mirror = await openLiveFile(this.row, this.#memory, this.#context.liveFiles);
    const steps = follow(mirror, this.#context);
    this.#opened = { mirror, steps };
    return await advance(steps, undefined);
  }

  /** One file fails by itself; a stop, or a failure of the state or the lease, ends the whole poll. */
  async #enter(work: () => Promise<State>): Promise<void> {
    try {
      this.#context.signal.throwIfAborted();
      this.#state = await work();
    } catch (thrown) {
      const error = asJobtailError(thrown);
      this.#state = error.policy.endsPoll ? { kind: 'idle' } : { kind: 'failed', error };
      if (error.policy.endsPoll) throw error;
    }
  }

  /** At the end, one failure does not prevent the other releases. */
  async #guardEnd(work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) => {
      if (this.#state.kind !== 'failed') this.#state = { kind: 'failed', error: asJobtailError(error) };
    });
  }

  /** Remembers a poll of one request that found all bytes in the mirror, or no file. */
  async #noteQuiet(): Promise<void> {
    const [exchange, ...more] = this.#exchanges;
    if (this.#context.final || this.mirror === undefined || this.mirror.changed) return;
    if (exchange === undefined || more.length > 0 || (this.end !== 'current' && this.end !== 'absent')) return;
    this.#memory.quiet = await quietPoll(exchange, this.end);
  }

  /** Requests for a file that fails are repeated with back-off. */
  #noteFailure(): void {
    const { error } = this;
    // A complete pass does not wait, so it sets no pause.
    if (this.#exchanges.length === 0 || this.#context.final) return;
    if (error === undefined || error.policy.exitCode === EXIT.local) {
      this.#memory.failed = undefined;
      return;
    }
    const pause = this.#memory.failed?.pause ?? new BackOff({ ...PAUSES, nowMs: this.#context.monotonic });
    pause.lengthen();
    this.#memory.failed = { error, pause };
  }

  /** Reports a file as stuck whose polls leave work undone for a minute without progress. */
  async #noteStuck(): Promise<void> {
    const { mirror, end } = this;
    const { debounce } = this.#context;
    if (mirror === undefined || this.#state.kind === 'failed') return;
    if (!isUnfinished(end)) return debounce.clear(mirror, 'stuck');
    if (!debounce.hasPersisted(mirror, 'stuck')) return;
    this.#state = { kind: 'failed', error: await stuckError(end, this.#exchanges) };
  }
}

async function advance(steps: Follow<FollowEnd>, part: Part | undefined): Promise<State> {
  const step = await steps.next(part);
  if (step.done) return { kind: 'ended', end: step.value };
  return { kind: 'waits', offset: step.value, resume: (next) => advance(steps, next) };
}

export interface QuietPoll {
  readonly offset: number;
  /** The text of the response, one character a byte; null if the file did not exist. */
  readonly text: string | null;
  readonly end: 'current' | 'absent';
}

const MAX_TEXT_BYTES = 4 * 1024;

/** What is kept of a poll of one request that changed nothing; undefined if its response is too long. */
async function quietPoll({ offset, part }: Exchange, end: QuietPoll['end']): Promise<QuietPoll | undefined> {
  if ((part?.content.length ?? 0) > MAX_TEXT_BYTES) return undefined;
  return { offset, text: await textOf(part), end };
}

/** Whether the mirror is as the quiet poll left it. */
async function isUnchanged(row: LiveFileRow, mirrors: Mirrors): Promise<boolean> {
  return row.rotation === null && row.inexact.length === 0 && (await mirrors.isAsLeft(row));
}

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
export interface Exchange {
  readonly offset: number;
  readonly part: Part | undefined;
}

const MAX_SHOWN = 6;
const SHOWN_BYTES = 8;

/** Why the polls of a stuck file ended early. */
const REASONS: Partial<Record<FollowEnd, string>> = {
  raw: 'the next bytes are not UTF-8, and the raw download failed',
  unclear: 'responses from different offsets contradict each other',
};

/** Whether a poll with this end left work undone. */
function isUnfinished(end: FollowEnd | undefined): end is FollowEnd {
  return end !== undefined && end in REASONS;
}

async function stuckError(end: FollowEnd, exchanges: readonly Exchange[]): Promise<JobtailError> {
  const shown: string[] = [];
  for (const { offset, part } of exchanges.slice(0, MAX_SHOWN)) shown.push(`from ${offset}: ${await shownOf(part)}`);
  const message = `no progress: ${REASONS[end]} (${shown.join('; ')})`;
  return new JobtailError('stuck', message, {
    hint: 'run `agent verify` to compare the mirror with raw bytes; if it differs, report this message',
  });
}

async function shownOf(part: Part | undefined): Promise<string> {
  if (part === undefined) return 'no entry';
  const { content } = part;
  if (content.length === 0) return 'no text';
  const begins = (await content.read(0, SHOWN_BYTES)).toString('hex');
  return `${content.length} bytes of text that begin with ${begins}`;
}
