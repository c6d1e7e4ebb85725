/**
 * A content that somebody looks at: which stretch of it the page has, what is fetched next, and whether its end is followed.
 * One request at a time; what grows faster than it can be shown is skipped, never queued.
 */
import { type Signal, signal } from '@preact/signals';
import type { FileLength } from '../../contract/events.ts';
import type { Refused, Stretch } from '../api.ts';
import { TextWindow } from './text-window.ts';

/** Of bytes that are fetched at once. */
const STRETCH_BYTES = 128 * 1024;
/** What is shown before the byte that somebody jumps to. */
const BEFORE_BYTES = 16 * 1024;
/** Further behind the end than this, following begins anew at the end. */
const FAR_BEHIND_BYTES = 256 * 1024;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/** Where the bytes come from. `version` undefined: what stands there now. */
export interface ByteSource {
  stretch(where: Where, version: string | undefined, signal: AbortSignal): Promise<Stretch>;
  /** From the first byte, up to the second one or a bit further. */
  bytes(range: readonly [number, number], version: string, signal: AbortSignal): Promise<Uint8Array>;
  /** The number of the line that a byte is in, once it is counted. */
  line(byte: number, version: string, signal: AbortSignal): Promise<number>;
  /** Before what came is taken in: the next frame of the screen. */
  frame(): Promise<void>;
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

export type Where = { readonly from?: number; readonly to?: number; readonly bytes: number };

export interface Standing {
  readonly version: string | undefined;
  /** The length of the content. */
  readonly bytes: number;
  /** Lines are counted up to here. */
  readonly counted: number;
  readonly lines: number;
  /** The file was rewritten, and this is what it was before. */
  readonly isFormer: boolean;
  readonly isLoaded: boolean;
  /** A byte was asked for that the file does not have. */
  readonly isPastEnd: boolean;
  readonly problem: Error | undefined;
}

/** Where the rows are to be scrolled to; each object is one wish. */
export type Target = { readonly byte: number } | 'end';

type Changed = Pick<FileLength, 'version' | 'bytes'> & Partial<Pick<FileLength, 'counted' | 'lines'>>;

export interface Opening {
  /** Undefined: what stands there now. */
  readonly version?: string | undefined;
  /** The byte that is shown first; undefined: the end. */
  readonly at?: number | undefined;
  readonly follows: boolean;
  /** What becomes of it is announced; else it stays as it is. */
  readonly isWatched: boolean;
}

export class OpenFile {
  readonly window = new TextWindow();
  /** Counts the changes of the window. */
  readonly changes: Signal<number> = signal(0);
  readonly following: Signal<boolean>;
  readonly target: Signal<Target | undefined> = signal(undefined);
  readonly standing: Signal<Standing>;
  /** How long it was when it was last followed. */
  readonly followedTo: Signal<number> = signal(0);
  readonly #source: ByteSource;
  readonly #closed = new AbortController();
  #jump: number | undefined;
  #wantsBefore = false;
  #wantsBehind = false;
  readonly #isWatched: boolean;
  #isRunning = false;
  #isCounting = false;
  #failures = 0;
  /** The server has nothing of this version any more: it is not asked for again. */
  #gone: string | undefined;

  constructor(source: ByteSource, { version, at, follows, isWatched }: Opening) {
    this.#source = source;
    this.following = signal(follows);
    this.#jump = at;
    this.#isWatched = isWatched;
    this.standing = signal({
      version,
      bytes: 0,
      counted: 0,
      lines: 0,
      isFormer: false,
      isLoaded: false,
      isPastEnd: false,
      problem: undefined,
    });
    void this.#run();
  }

  close(): void {
    this.#closed.abort();
  }

  /** The content as the server knows it now. */
  announce({ version, bytes, counted, lines }: Changed): void {
    const now = this.standing.value;
    if (now.version !== undefined && version !== now.version) {
      if (this.following.value) this.#beginAnew(version, bytes);
      else this.#set({ isFormer: true });
      return;
    }
    if (bytes < this.window.end && now.isLoaded) {
      this.window.cutBack(bytes);
      this.changes.value++;
    }
    this.#set({ bytes, counted: counted ?? now.counted, lines: lines ?? now.lines });
    void this.#countLine();
    void this.#run();
  }

  follow(): void {
    const { isFormer } = this.standing.value;
    this.following.value = true;
    if (isFormer) this.#beginAnew(undefined, 0);
    this.target.value = 'end';
    void this.#run();
  }

  pause(): void {
    if (this.following.value) this.followedTo.value = this.standing.value.bytes;
    this.following.value = false;
  }

  /** Shows the line that a byte is in. */
  jumpTo(byte: number): void {
    this.pause();
    const { start, end } = this.window;
    const isHere = byte >= start && (byte < end || (byte === end && byte === this.standing.value.bytes));
    if (isHere) this.target.value = { byte };
    else this.#jump = byte;
    void this.#run();
  }

  jumpToEnd(): void {
    this.pause();
    this.jumpTo(Math.max(0, this.standing.value.bytes - 1));
    if (this.#jump === undefined) this.target.value = 'end';
  }

  /** The rows before the first one will soon be seen. */
  wantBefore(): void {
    this.#wantsBefore = this.window.start > 0;
    if (this.#wantsBefore) void this.#run();
  }

  wantBehind(): void {
    this.#wantsBehind = this.window.end < this.standing.value.bytes;
    if (this.#wantsBehind) void this.#run();
  }

  #beginAnew(version: string | undefined, bytes: number): void {
    this.#set({ version, bytes, counted: 0, lines: 0, isFormer: false, isLoaded: false, isPastEnd: false });
    this.#jump = undefined;
    void this.#run();
  }

  #set(change: Partial<Standing>): void {
    this.standing.value = { ...this.standing.value, ...change };
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const { signal } = this.#closed;
    for (let step = this.#next(); step !== undefined && !signal.aborted; step = this.#next()) {
      try {
        await step(signal);
        this.#failures = 0;
        if (this.standing.value.problem !== undefined) this.#set({ problem: undefined });
      } catch (error) {
        if (!signal.aborted) await this.#failed(error as Error, signal);
      }
    }
    this.#isRunning = false;
  }

  async #failed(error: Error, signal: AbortSignal): Promise<void> {
    const { status, version, retryAfterMs } = error as Partial<Refused>;
    if (status === 409 && version !== undefined && version !== this.standing.value.version) {
      this.#gone = this.standing.value.version;
      this.announce({ version, bytes: 0 });
      if (!this.following.value) this.#set({ problem: error });
      return;
    }
    this.#set({ problem: error });
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures++);
    await this.#source.wait(retryAfterMs ?? wait, signal).catch(() => undefined);
  }

  /** What is to be fetched now; undefined if there is nothing. */
  #next(): ((signal: AbortSignal) => Promise<void>) | undefined {
    const { isLoaded, bytes, version } = this.standing.value;
    if (version !== undefined && version === this.#gone) return undefined;
    const { window } = this;
    const jump = this.#jump;
    if (jump !== undefined) return (signal) => this.#loadAround(jump, signal);
    if (!isLoaded) return (signal) => this.#loadEnd(signal);
    const behind = bytes - window.end;
    if (this.following.value && behind > FAR_BEHIND_BYTES) return (signal) => this.#loadEnd(signal);
    if (behind > 0 && (this.following.value || this.#wantsBehind)) return (signal) => this.#loadBehind(signal);
    if (this.#wantsBefore && window.start > 0) return (signal) => this.#loadBefore(signal);
    return undefined;
  }

  async #loadAround(byte: number, signal: AbortSignal): Promise<void> {
    const where = { from: Math.max(0, byte - BEFORE_BYTES), bytes: STRETCH_BYTES };
    let stretch = await this.#source.stretch(where, this.standing.value.version, signal);
    // A link may be older than the file: its end is shown, and that the place is gone.
    if (byte >= stretch.total && stretch.total > 0) {
      if (this.#jump === byte) this.#jump = stretch.total - 1;
      this.#set({ isPastEnd: true });
      return;
    }
    // A line that is longer than what stands before the byte.
    if (byte >= stretch.start + stretch.bytes.length && byte < stretch.total)
      stretch = await this.#source.stretch({ from: byte, bytes: STRETCH_BYTES }, this.standing.value.version, signal);
    if (this.#jump !== byte) return;
    this.#jump = undefined;
    await this.#take(stretch, { byte });
  }

  async #loadEnd(signal: AbortSignal): Promise<void> {
    const stretch = await this.#source.stretch({ bytes: STRETCH_BYTES }, this.standing.value.version, signal);
    if (this.#jump === undefined) await this.#take(stretch, 'end');
  }

  async #take(stretch: Stretch, target: Target): Promise<void> {
    await this.#source.frame();
    this.window.replace(stretch, stretch.bytes);
    const { bytes } = this.standing.value;
    this.#set({ version: stretch.version, bytes: Math.max(bytes, stretch.total), isLoaded: true });
    this.changes.value++;
    this.target.value = target;
    void this.#countLine();
  }

  async #loadBehind(signal: AbortSignal): Promise<void> {
    const { version = '', bytes } = this.standing.value;
    const from = this.window.end;
    const range = [from, Math.min(bytes, from + STRETCH_BYTES)] as const;
    const fetched = await this.#source.bytes(range, version, signal);
    await this.#source.frame();
    this.#wantsBehind = false;
    // What was taken back meanwhile is asked for again.
    if (this.window.end !== from || this.standing.value.version !== version) return;
    // Some may have come since; what is told next counts from behind them.
    this.window.append(fetched);
    this.#set({ bytes: Math.max(this.standing.value.bytes, this.window.end) });
    this.changes.value++;
  }

  async #loadBefore(signal: AbortSignal): Promise<void> {
    const { version } = this.standing.value;
    const to = this.window.start;
    const stretch = await this.#source.stretch({ to, bytes: STRETCH_BYTES }, version, signal);
    await this.#source.frame();
    this.#wantsBefore = false;
    if (this.window.start !== to || this.standing.value.version !== version) return;
    this.window.prepend(stretch, stretch.bytes);
    this.changes.value++;
  }

  /** Apart from the rest: the server may have to count through gigabytes first. */
  async #countLine(): Promise<void> {
    const { version, counted, isLoaded } = this.standing.value;
    const { start, line } = this.window;
    if (this.#isCounting || !isLoaded || version === undefined || line !== undefined) return;
    if (this.#isWatched && counted < start) return;
    this.#isCounting = true;
    try {
      const found = await this.#source.line(start, version, this.#closed.signal);
      if (this.window.start === start && this.standing.value.version === version) this.window.line = found;
      this.changes.value++;
    } catch {
      // Numbers of lines are left out; the next change asks again.
    } finally {
      this.#isCounting = false;
    }
  }
}
