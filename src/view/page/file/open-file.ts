/**
 * A content that is open on the page: which stretch of it the page has, what is fetched next, and whether its end is
 * followed. One request at a time; what grows faster than it can be shown is skipped, never queued.
 */
import { computed, type Signal, signal } from '@preact/signals';
import { nominalPause } from '../../../back-off.ts';
import type { LinePlace, LinesQuery } from '../../contract/addresses.ts';
import type { RefusedByView, Stretch } from '../api.ts';
import { TextWindow } from './text-window.ts';

/** Of bytes that are fetched at once. */
const STRETCH_BYTES = 128 * 1024;
/** Bytes that are shown before the target of a jump. */
const BEFORE_BYTES = 16 * 1024;
/** Further behind the end than this, following begins anew at the end. */
const FAR_BEHIND_BYTES = 256 * 1024;
const WAITS = { firstMs: 500, maxMs: 10_000 };

/** Where the bytes come from. `version` undefined: what stands there now. */
export interface ByteSource {
  stretch(where: LinesQuery, version: string | undefined, signal: AbortSignal): Promise<Stretch>;
  place(at: { line: number } | { byte: number }, version: string | undefined, signal: AbortSignal): Promise<LinePlace>;
  /** Before what came is taken in: the next frame of the screen. */
  frame(): Promise<void>;
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/**
 * What the page shows of the content:
 *   coming    nothing yet; its end will be followed
 *   sought    nothing yet; a place in it will be shown
 *   followed  its end, and what is appended
 *   paused    a place in it, whatever is appended
 *   former    what the file was before it was rewritten: the server has no more of it, and nothing is requested
 */
export type Phase = 'coming' | 'sought' | 'followed' | 'paused' | 'former';

/** `rewritten`: there is another version. */
type Event = 'loaded' | 'follow' | 'pause' | 'rewritten';

/** `anew`: `coming`, of the current version of the file. */
const NEXT: Readonly<Record<Phase, Readonly<Record<Event, Phase | 'anew'>>>> = {
  coming: { loaded: 'followed', follow: 'coming', pause: 'sought', rewritten: 'anew' },
  sought: { loaded: 'paused', follow: 'coming', pause: 'sought', rewritten: 'former' },
  followed: { loaded: 'followed', follow: 'followed', pause: 'paused', rewritten: 'anew' },
  paused: { loaded: 'paused', follow: 'followed', pause: 'paused', rewritten: 'former' },
  former: { loaded: 'former', follow: 'anew', pause: 'former', rewritten: 'former' },
};

export interface FileCondition {
  readonly phase: Phase;
  readonly version: string | undefined;
  /** The length of the content. */
  readonly bytes: number;
  readonly problem: Error | undefined;
}

/** Besides the end: the bytes around a place that the reader goes to, or the rows that are seen soon. */
type Wish = { readonly around: number } | 'before' | 'behind' | undefined;

/** Where the rows are to be scrolled to; each object is one wish. */
export type ScrollTarget = { readonly byte: number } | 'end';

export interface Opening {
  /** Undefined: what stands there now. */
  readonly version?: string | undefined;
  /** The byte that is shown first, and marked; undefined: the end of a live file, also of a former one, else byte 0. */
  readonly at?: number | undefined;
  /** The last line of a marked range begins here. */
  readonly to?: number | undefined;
  readonly follows: boolean;
}

export class OpenFile {
  readonly window = new TextWindow();
  /** Counts the changes of the window. */
  readonly changes: Signal<number> = signal(0);
  readonly target: Signal<ScrollTarget | undefined> = signal(undefined);
  readonly condition: Signal<FileCondition>;
  readonly following = computed(() => ['coming', 'followed'].includes(this.condition.value.phase));
  /** How long it was when it was last followed. */
  readonly followedTo: Signal<number> = signal(0);
  readonly #source: ByteSource;
  readonly #closed = new AbortController();
  #wish: Wish;
  /** The version that was reported last. */
  #announced: string | undefined;
  #move: object = {};
  #isRunning = false;
  #isCounting = false;
  #failures = 0;

  constructor(source: ByteSource, { version, at, follows }: Opening) {
    this.#source = source;
    const first = at ?? (follows || version !== undefined ? undefined : 0);
    if (first !== undefined) this.#wish = { around: first };
    const phase = follows ? 'coming' : 'sought';
    this.condition = signal({ phase, version, bytes: 0, problem: undefined });
    void this.#run();
  }

  close(): void {
    this.#closed.abort();
  }

  announce({ version, bytes }: { readonly version: string; readonly bytes: number }): void {
    const now = this.condition.value;
    this.#announced = version;
    if (now.version !== undefined && version !== now.version) {
      this.#send('rewritten', version, bytes);
      return;
    }
    if (bytes < this.window.end && this.isLoaded) {
      this.window.cutBack(bytes);
      this.changes.value++;
    }
    this.#set({ bytes });
    void this.#countLine();
    void this.#run();
  }

  follow(): void {
    this.beginMove();
    this.#send('follow');
    this.target.value = 'end';
    void this.#run();
  }

  /** The reader scrolled to the very end: it is followed from now on, unless the file is another one by now. */
  reachEnd(): void {
    if (!this.isFormer) this.#send('follow');
  }

  pause(): void {
    if (this.following.value) this.followedTo.value = this.condition.value.bytes;
    this.#send('pause');
  }

  jumpTo(byte: number): void {
    this.#show(byte, { byte });
  }

  jumpToEnd(): void {
    this.#show(Math.max(0, this.condition.value.bytes - 1), 'end');
  }

  /** Begins a move to another place; the returned function returns whether none began since. */
  beginMove(): () => boolean {
    const move = {};
    this.#move = move;
    return () => move === this.#move;
  }

  #show(byte: number, target: ScrollTarget): void {
    this.beginMove();
    this.pause();
    const { start, end } = this.window;
    const isWithin = byte >= start && (byte < end || (byte === end && byte === this.condition.value.bytes));
    // Before anything is here, the end comes by itself.
    const isHere = isWithin && (this.isLoaded || target === 'end');
    this.#wish = isHere ? undefined : { around: byte };
    if (isHere) this.target.value = target;
    void this.#run();
  }

  /** The rows before the first one will soon be seen. */
  wantBefore(): void {
    if (this.window.start > 0) this.#want('before');
  }

  wantBehind(): void {
    if (this.window.end < this.condition.value.bytes) this.#want('behind');
  }

  /** A place that the reader goes to is first. */
  #want(wish: Wish): void {
    if (typeof this.#wish !== 'object') this.#wish = wish;
    void this.#run();
  }

  /** Where the line ends that a byte is in: the first byte of the next one, or the length of the content. */
  async endOfLine(byte: number): Promise<number> {
    const { version } = this.condition.value;
    const { line } = await this.#source.place({ byte }, version, this.#closed.signal);
    const next = await this.#source.place({ line: line + 1 }, version, this.#closed.signal);
    return next.line > line ? next.byte : next.bytes;
  }

  /** The file was rewritten, and this is what it was before. */
  get isFormer(): boolean {
    return this.condition.value.phase === 'former';
  }

  /** Rows of it are here. */
  get isLoaded(): boolean {
    const { phase } = this.condition.value;
    return phase !== 'coming' && phase !== 'sought';
  }

  /** With `anew`: `version` is the current one (undefined: not known), with `bytes` bytes. */
  #send(event: Event, version?: string, bytes = 0): void {
    const now = this.condition.value.phase;
    const phase = NEXT[now][event];
    if (phase === now) return;
    if (phase !== 'anew') {
      this.#set({ phase });
      return;
    }
    this.beginMove();
    this.#set({ phase: 'coming', version, bytes });
    this.#wish = undefined;
    void this.#run();
  }

  #set(change: Partial<FileCondition>): void {
    this.condition.value = { ...this.condition.value, ...change };
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const { signal } = this.#closed;
    for (let step = this.#next(); step !== undefined && !signal.aborted; step = this.#next()) {
      try {
        await step(signal);
        this.#failures = 0;
        if (this.condition.value.problem !== undefined) this.#set({ problem: undefined });
      } catch (error) {
        if (!signal.aborted) await this.#failed(error as Error, signal);
      }
    }
    this.#isRunning = false;
  }

  async #failed(error: Error, signal: AbortSignal): Promise<void> {
    const { status, version, retryAfterMs } = error as Partial<RefusedByView>;
    const now = this.condition.value.version;
    if (status === 409 && version !== undefined && now !== undefined && version !== now) {
      this.#send('rewritten', version);
      if (this.isFormer) this.#set({ problem: error });
      return;
    }
    this.#set({ problem: error });
    this.#failures++;
    await this.#source.wait(retryAfterMs ?? nominalPause(this.#failures, WAITS), signal);
  }

  /** What is to be fetched now; undefined if there is nothing. */
  #next(): ((signal: AbortSignal) => Promise<void>) | undefined {
    const { phase, bytes } = this.condition.value;
    const wish = this.#wish;
    if (phase === 'former') return undefined;
    if (typeof wish === 'object') return (signal) => this.#loadAround(wish, signal);
    if (!this.isLoaded) return (signal) => this.#loadEnd(signal);
    const behind = bytes - this.window.end;
    if (phase === 'followed' && behind > FAR_BEHIND_BYTES) return (signal) => this.#loadEnd(signal);
    if (behind > 0 && (phase === 'followed' || wish === 'behind')) return (signal) => this.#loadBehind(signal);
    if (wish === 'before' && this.window.start > 0)
      return (signal) => (this.window.beginsInStates ? this.#skipBefore(signal) : this.#loadBefore(signal));
    return undefined;
  }

  async #loadAround(wish: Exclude<Wish, string | undefined>, signal: AbortSignal): Promise<void> {
    const byte = wish.around;
    const where = { from: Math.max(0, byte - BEFORE_BYTES), bytes: STRETCH_BYTES };
    let stretch = await this.#fetch(where, signal);
    // A link may be older than the file: its end is shown.
    if (stretch !== undefined && byte >= stretch.total && stretch.total > 0) {
      if (this.#wish === wish) this.#wish = { around: stretch.total - 1 };
      return;
    }
    // A line that is longer than what stands before the byte.
    if (stretch !== undefined && byte >= stretch.start + stretch.bytes.length && byte < stretch.total)
      stretch = await this.#fetch({ from: byte, bytes: STRETCH_BYTES }, signal);
    if (stretch === undefined || this.#wish !== wish) return;
    this.#wish = undefined;
    this.#take(stretch, { byte });
  }

  async #loadEnd(signal: AbortSignal): Promise<void> {
    const stretch = await this.#fetch({ bytes: STRETCH_BYTES }, signal);
    const isWanted = typeof this.#wish !== 'object' && (this.following.value || !this.isLoaded);
    if (stretch !== undefined && isWanted) this.#take(stretch, 'end');
  }

  /** Undefined if another version was reported meanwhile. */
  async #fetch(where: LinesQuery, signal: AbortSignal): Promise<Stretch | undefined> {
    const { version } = this.condition.value;
    const announced = this.#announced;
    const stretch = await this.#source.stretch(where, version, signal);
    await this.#source.frame();
    if (version !== undefined) return this.condition.value.version === version ? stretch : undefined;
    return [announced, stretch.version].includes(this.#announced) ? stretch : undefined;
  }

  #take(stretch: Stretch, target: ScrollTarget): void {
    this.window.replace(stretch, stretch.bytes);
    const { bytes } = this.condition.value;
    this.#set({ version: stretch.version, bytes: Math.max(bytes, stretch.total) });
    this.#send('loaded');
    this.changes.value++;
    this.target.value = target;
    void this.#countLine();
  }

  async #loadBehind(signal: AbortSignal): Promise<void> {
    const { version = '', bytes } = this.condition.value;
    const from = this.window.end;
    const isFar = this.window.endsInStates && bytes - from > STRETCH_BYTES;
    const to = isFar ? await this.endOfLine(from - 1) : from;
    // Of a progress bar, the last states are next, however many are between.
    const where = to - from > STRETCH_BYTES ? { to } : { at: from };
    const max = Math.min(bytes - from, STRETCH_BYTES);
    const fetched = await this.#source.stretch({ ...where, bytes: max }, version, signal);
    await this.#source.frame();
    if (this.#wish === 'behind') this.#wish = undefined;
    // Bytes that were dropped meanwhile are requested again.
    if (this.window.end !== from || this.condition.value.version !== version) return;
    if (fetched.bytes.length === 0) throw new Error('the mirror is shorter than it was a moment ago');
    if (fetched.start > from) this.window.appendLater(fetched.start, fetched.bytes);
    else this.window.append(fetched.bytes);
    // Some may have arrived since; the next report counts from after them.
    this.#set({ bytes: Math.max(this.condition.value.bytes, this.window.end) });
    this.changes.value++;
  }

  async #loadBefore(signal: AbortSignal): Promise<void> {
    const { version } = this.condition.value;
    const to = this.window.start;
    const stretch = await this.#source.stretch({ to, bytes: STRETCH_BYTES }, version, signal);
    await this.#source.frame();
    if (this.#wish === 'before') this.#wish = undefined;
    if (this.condition.value.version !== version) return;
    this.window.prepend(stretch, stretch.bytes);
    this.changes.value++;
  }

  /** The first row is a progress bar: what comes before its line is next, however long it is. */
  async #skipBefore(signal: AbortSignal): Promise<void> {
    const { version = '' } = this.condition.value;
    const { byte, line } = await this.#source.place({ byte: this.window.start }, version, signal);
    if (this.condition.value.version !== version) return;
    this.window.beginLineAt(byte, line);
    this.changes.value++;
  }

  /** Apart from the rest: the server may have to count through gigabytes first. */
  async #countLine(): Promise<void> {
    const { version } = this.condition.value;
    const { start, line } = this.window;
    if (this.#isCounting || !this.isLoaded || version === undefined || line !== undefined) return;
    this.#isCounting = true;
    let isCounted = false;
    try {
      const found = await this.#source.place({ byte: start }, version, this.#closed.signal);
      isCounted = true;
      if (this.window.start === start && this.condition.value.version === version) this.window.line = found.line;
      this.changes.value++;
    } catch {
      // Numbers of lines are left out; the next change asks again.
    } finally {
      this.#isCounting = false;
    }
    // Other rows may be here by now.
    if (isCounted) void this.#countLine();
  }
}
