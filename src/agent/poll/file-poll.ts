/**
 * One live file in a poll: its requests, their responses, and how it ends. Of a quiet file, the same response to the
 * same request means the same as last time, as long as its mirror is as the agent left it: no mirror is opened then,
 * and nothing is compared.
 */
import { BackOff } from '../../back-off.ts';
import { asJobtailError, EXIT, type JobtailError } from '../../errors.ts';
import { keyText } from '../../job.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import { enoughTextOf } from '../live/append/append.ts';
import { follow } from '../live/follow.ts';
import type { FileMemory, QuietPoll } from '../live/memory.ts';
import type { LiveFile, LiveFileOptions } from '../live/mirror/live-file.ts';
import type { Mirrors } from '../live/mirror/mirror.ts';
import { openLiveFile } from '../live/mirror/open-live-file.ts';
import type { FollowContext, FollowEnd } from '../live/steps.ts';
import type { Follow, Part, PartRequest } from '../ports.ts';
import type { Batch } from './batch.ts';
import { type Exchange, isUnfinished, stuckError } from './stuck.ts';

/** What live files are polled with, whichever job they are of. */
export interface FilePollContext extends Omit<FollowContext, 'final' | 'hasWholeFiles' | 'signal'> {
  readonly liveFiles: LiveFileOptions;
  /** Bytes of text that make a backlog a long one. */
  readonly longBacklogBytes: number;
  /** A clock that never jumps, in milliseconds. */
  readonly monotonic: () => number;
}

/** Repeated requests for one broken file load the service, so the pause grows. Without jitter, it is the whole of it. */
const PAUSES = { firstMs: 1_000, maxMs: 30 * 60_000, random: () => 1 };

/** Which file is polled, and what is remembered of it from poll to poll. */
interface PolledFile {
  readonly row: LiveFileRow;
  readonly memory: FileMemory;
}

/** How a job is polled this time. */
export interface FilePollOptions extends Pick<FollowContext, 'final' | 'signal'> {
  readonly hasWholeFiles?: boolean | undefined;
}

export class FilePoll {
  readonly name: string;
  readonly row: LiveFileRow;
  readonly #memory: FileMemory;
  readonly #context: FilePollContext & FollowContext;
  /** How it went the last time, if that was quiet and the mirror lies there as it did. */
  #quiet: QuietPoll | undefined;
  #mirror: LiveFile | undefined;
  #steps: Follow<FollowEnd> | undefined;
  #asks: number | undefined;
  #end: FollowEnd | undefined;
  #error: JobtailError | undefined;
  readonly #exchanges: Exchange[] = [];

  constructor(
    { row, memory }: PolledFile,
    context: FilePollContext,
    { final, hasWholeFiles = true, signal }: FilePollOptions,
  ) {
    this.name = keyText(row);
    this.row = row;
    this.#memory = memory;
    this.#context = { ...context, final, hasWholeFiles, signal };
  }

  /** The offset it waits for; undefined once it has ended. */
  get asks(): number | undefined {
    return this.#asks;
  }

  get end(): FollowEnd | undefined {
    return this.#end;
  }

  get error(): JobtailError | undefined {
    return this.#error;
  }

  /** The mirror, unless the file was quiet. */
  get mirror(): LiveFile | undefined {
    return this.#mirror;
  }

  request(): PartRequest {
    const { taskId, file } = this.row;
    const { final, longBacklogBytes } = this.#context;
    const mirror = final ? undefined : this.#mirror;
    const enoughBytes = mirror && enoughTextOf(mirror, longBacklogBytes, this.#hasBeginning);
    return { taskId, file, offset: this.#asks ?? 0, enoughBytes };
  }

  begin(): Promise<void> {
    return this.#guard(async () => {
      const { final, liveFiles } = this.#context;
      const { failed } = this.#memory;
      if (!final && failed !== undefined && failed.pause.remainingMs > 0) {
        this.#error = failed.error;
        return;
      }
      this.#quiet = final ? undefined : await lastQuietPoll(this.row, this.#memory, liveFiles.mirrors);
      if (this.#quiet === undefined) await this.#open();
      else this.#asks = this.#quiet.offset;
    });
  }

  /** Takes its part of the responses; from now on it releases that part. */
  take(batch: Batch): void {
    this.#exchanges.push({ offset: this.#asks ?? 0, part: batch.parts.get(this.name) });
  }

  /** Goes on with what it took. */
  async resume(batch: Batch): Promise<void> {
    const part = batch.parts.get(this.name);
    await this.#guard(async () => {
      const error = batch.errors.get(this.name);
      // A first question shows that the text is too long to be sent; the recipe goes on from there.
      const isTooLong = part?.isBeginning === true && this.#exchanges.length === 1;
      if (error !== undefined && !isTooLong) throw error;
      if (this.#quiet === undefined) await this.#advance(part);
      else if (await isSame(this.#quiet, part, this.row)) this.#repeat(this.#quiet);
      else await this.#wake(this.#quiet, part);
    });
  }

  /** Flushes appended bytes and releases the texts and the mirror; never rejects. */
  async close(): Promise<void> {
    const mirror = this.#mirror;
    // A generator that is not resumed releases what it owns.
    await this.#guardEnd(async () => void (await this.#steps?.return('unclear')));
    if (this.#hasBeginning && this.#end !== 'current') this.#memory.wantsWholeText = true;
    await this.#guardEnd(async () => void (await mirror?.flushToRow()));
    await this.#guardEnd(() => this.#noteQuiet());
    this.#noteFailure();
    await this.#guardEnd(() => this.#noteStuck());
    for (const { part } of this.#exchanges) await this.#guardEnd(async () => part?.content.release());
    await this.#guardEnd(async () => mirror?.close());
  }

  get #hasBeginning(): boolean {
    return this.#exchanges.some(({ part }) => part?.isBeginning === true);
  }

  /** The response is the same as the last one, so the poll ends the same way. */
  #repeat({ end }: QuietPoll): void {
    this.#asks = undefined;
    this.#end = end;
  }

  /** It was quiet, and is no longer. */
  async #wake(quiet: QuietPoll, part: Part | undefined): Promise<void> {
    this.#quiet = undefined;
    await this.#open();
    // The recipe asks what was asked already, unless the mirror was changed just now.
    if (this.#asks === quiet.offset) await this.#advance(part);
  }

  async #open(): Promise<void> {
    this.#memory.quiet = undefined;
    this.#asks = undefined;
    this.#mirror = await openLiveFile(this.row, this.#memory, this.#context.liveFiles);
    this.#steps = follow(this.#mirror, this.#context);
    await this.#advance(undefined);
  }

  async #advance(part: Part | undefined): Promise<void> {
    this.#asks = undefined;
    const step = await this.#steps?.next(part);
    if (step === undefined) return;
    if (step.done) this.#end = step.value;
    else this.#asks = step.value;
  }

  /**
   * A failure of one file is its own; one that stops the agent, or of the state or the right to the job, ends the poll.
   */
  async #guard(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      const error = asJobtailError(thrown);
      this.#asks = undefined;
      if (error.policy.endsPoll) throw error;
      this.#error = error;
    }
  }

  /** At the end, one failure does not prevent the other releases. */
  async #guardEnd(work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) => {
      this.#error ??= asJobtailError(error);
    });
  }

  /** A poll of one question that found the mirror to be all there is, or no file, is how quiet ones go. */
  async #noteQuiet(): Promise<void> {
    const [exchange, ...more] = this.#exchanges;
    const end = this.#end;
    if (this.#context.final || this.#mirror === undefined || this.#mirror.changed || this.#error !== undefined) return;
    if (exchange === undefined || more.length > 0 || (end !== 'current' && end !== 'absent')) return;
    this.#memory.quiet = await quietPoll(exchange, end);
  }

  /** Requests for a file that fails are repeated with back-off. */
  #noteFailure(): void {
    const error = this.#error;
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

  /** Reports a file as stuck that leaves work undone poll after poll, and does not grow. */
  async #noteStuck(): Promise<void> {
    const mirror = this.#mirror;
    const { debounce } = this.#context;
    const end = this.#end;
    if (mirror === undefined || this.#error !== undefined) return;
    if (!isUnfinished(end)) return debounce.clear(mirror, 'stuck');
    if (!debounce.hasPersisted(mirror, 'stuck')) return;
    this.#error = await stuckError(end, this.#exchanges);
    this.#end = undefined;
  }
}

/** The response of a quiet poll is kept up to this length. */
const MAX_TEXT_BYTES = 4 * 1024;

/** The last poll of the file, if it was quiet and the mirror is as it was then. */
async function lastQuietPoll(
  row: LiveFileRow,
  { quiet }: FileMemory,
  mirrors: Mirrors,
): Promise<QuietPoll | undefined> {
  if (quiet === undefined || row.rotation !== null || row.inexact.length > 0) return undefined;
  return (await mirrors.isAsLeft(row)) ? quiet : undefined;
}

/** What is kept of a poll of one request that changed nothing; undefined if its response is too long. */
async function quietPoll({ offset, part }: Exchange, end: QuietPoll['end']): Promise<QuietPoll | undefined> {
  if ((part?.content.length ?? 0) > MAX_TEXT_BYTES) return undefined;
  return { offset, text: await textOf(part), end };
}

/** Whether a part is that of the quiet poll before. */
async function isSame(quiet: QuietPoll, part: Part | undefined, row: LiveFileRow): Promise<boolean> {
  if (part === undefined) return quiet.text === null;
  if (part.isBeginning) return false;
  if (part.content.length !== quiet.text?.length || part.relativePath !== row.relativePath) return false;
  return (await textOf(part)) === quiet.text;
}

async function textOf(part: Part | undefined): Promise<string | null> {
  return part === undefined ? null : (await part.content.read(0, part.content.length)).toString('latin1');
}
