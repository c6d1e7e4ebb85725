/**
 * The raw bytes of a live file, through DownloadFileFromCluster. A listed file is taken for the live file only if the
 * mirror is its beginning and its next bytes are what the service shows as text. Where that holds for several listed
 * files, only what they have in common is taken.
 */
import { commonLength } from '../../../bytes.ts';
import { asJobtailError } from '../../../errors.ts';
import type { Content, ContentWriter, Follow, Part, Remote, Sink } from '../../ports.ts';
import type { Difference } from '../match.ts';
import type { RawBytesTries } from '../memory.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import type { Reading } from '../text/reading.ts';
import { listedFiles, namesThatMayBe } from './listed-files.ts';
import { AnotherFile, type Arrival, RawArrival, type ShownPart, type ShownText, WholeArrival } from './raw-download.ts';

export interface RawBytesOptions {
  readonly remote: Remote;
  readonly newContent: () => ContentWriter;
  /** A clock that only goes forward, in milliseconds. */
  readonly now: () => number;
}

/** How it is asked for: in a final pass without waiting for the time to come. */
export interface RawBytesPass {
  readonly final: boolean;
  readonly signal: AbortSignal;
}

/** A file of this size is fetched raw again after a second at the soonest; a larger one accordingly later. */
const BYTES_A_SECOND = 256 * 1024;
const LONGEST_WAIT_MS = 10 * 60_000;
/** Bytes after the mirror that are compared with the text. */
const COMPARED_BYTES = 64 * 1024;
/** So often raw bytes must have been refused, with time in between, before they are given up for now. */
const REFUSALS = 2;
const STEP_BYTES = 1024 * 1024;

/** Those behind a mirror, those of its inexact regions, or all to be compared. */
type Which = Exclude<keyof RawBytesTries, 'refusals'>;

/** What the service shows of the file: known before a raw download, or asked for near the end of one. */
export type Shown = ShownPart | ((from: number, part: Part) => Promise<ShownPart>);

/** What the listed files have that may be the live file. */
interface Found {
  /** The listed name; undefined if there is more than one. */
  readonly listed: string | undefined;
  /** The bytes behind the mirror, of which `common` are certain. */
  readonly rest: Content;
  readonly common: number;
  /** The bytes of the mirror's inexact regions; undefined if the listed files differ in them. */
  readonly pieces: readonly Buffer[] | undefined;
}

/** A listed file that the service shows as it shows the live file; `rest` is what it has behind the mirror. */
interface Compared {
  readonly listed: string;
  readonly rest: Content;
  /** The bytes of the mirror's inexact regions. */
  readonly pieces: readonly Buffer[];
  readonly found: 'same' | Difference;
}

export class RawBytes {
  readonly #options: RawBytesOptions;

  constructor(options: RawBytesOptions) {
    this.#options = options;
  }

  /**
   * Appends the raw bytes behind the mirror; `text` stands where the mirror ends. False if they are not to be had now:
   * fetched a short while ago, not listed, or refused by the service.
   */
  async extend(file: LiveFile, text: Reading, pass: RawBytesPass): Promise<boolean> {
    return await this.#attempt(file, text, pass, async () => {
      await this.#appendFound(file, { texts: [text], comparedBytes: COMPARED_BYTES }, pass.signal);
    });
  }

  /**
   * The same for so many bytes that they go into the mirror while they arrive, if only one listed file may be the live
   * file: each of them is the right one, whether the rest comes or not.
   */
  async extendFar(file: LiveFile, texts: readonly Reading[], pass: RawBytesPass): Promise<boolean> {
    return await this.#attempt(file, texts[0], pass, async () => {
      const shown = { texts, comparedBytes: COMPARED_BYTES };
      const stream = async (name: string) => {
        const arrival = new RawArrival(file, shown, (bytes) => file.append(bytes));
        if (!(await this.#receive(file, name, arrival, pass.signal))) return false;
        if (arrival.pieces.length > 0) await file.mend(arrival.pieces);
        file.note({ listedName: name });
        return true;
      };
      const known = await knownName(file);
      if (known !== undefined && (await stream(known))) return;
      const [only, ...others] = await this.#listedNames(file, pass.signal);
      if (only === undefined) return;
      if (others.length > 0) await this.#appendFound(file, shown, pass.signal);
      else if (only !== known) await stream(only);
    });
  }

  /**
   * Holds all of the mirror against the raw bytes, where the text does not tell: its inexact regions are mended and what
   * is behind it appended, or the difference returned; undefined if they are not to be had now, or of several listed files.
   */
  async *compare(file: LiveFile, shown: Shown, pass: RawBytesPass): Follow<'same' | Difference | undefined> {
    if (!this.#isTime(file, 'all', pass)) return undefined;
    let only: Compared | undefined;
    let isTold = false;
    try {
      for await (const name of this.#names(file, pass.signal)) {
        const compared = yield* this.#compareWith(file, name, shown, pass.signal);
        if (compared === undefined) continue;
        // Of two that are shown alike, it could be either.
        const isAnother = only !== undefined;
        await only?.rest.release();
        only = compared;
        if (isAnother) return undefined;
        if (name === file.row.listedName) break;
      }
      if (only?.found === 'same') {
        if (only.pieces.length > 0) await file.mend(only.pieces);
        // All of the mirror was compared, not only what follows the text's offset.
        file.markCompared([]);
        await this.#append(file, { ...only, common: only.rest.length });
      }
      isTold = only !== undefined;
      return only?.found;
    } finally {
      this.#count(file, isTold);
      await only?.rest.release();
      this.#wait(file, 'all', pauseAfter(file.length));
    }
  }

  /** Puts the raw bytes into the inexact regions of the mirror, if they can be had by now; or says how they differ. */
  async *mend(file: LiveFile, shown: ShownPart, pass: RawBytesPass): Follow<Difference | undefined> {
    if (!this.#isTime(file, 'inside', pass)) return undefined;
    const found = await this.#find(file, undefined, pass.signal);
    await found?.rest.release();
    if (found?.pieces !== undefined) {
      await file.mend(found.pieces);
      this.#count(file, true);
      return undefined;
    }
    const compared = found === undefined ? yield* this.compare(file, shown, pass) : undefined;
    if (compared !== undefined && compared !== 'same') return compared;
    this.#wait(file, 'inside', LONGEST_WAIT_MS);
    return undefined;
  }

  /** Whether they were asked for often enough to go on without them. */
  areRefused(file: LiveFile, final: boolean): boolean {
    return (file.memory.rawBytes?.refusals ?? 0) >= (final ? 1 : REFUSALS);
  }

  #isTime(file: LiveFile, which: Which, { final }: RawBytesPass): boolean {
    return final || this.#options.now() >= (file.memory.rawBytes?.[which] ?? 0);
  }

  #wait(file: LiveFile, which: Which, waitMs: number): void {
    triesOf(file)[which] = this.#options.now() + waitMs;
  }

  #count(file: LiveFile, worked: boolean): void {
    const tries = triesOf(file);
    tries.refusals = worked ? 0 : tries.refusals + 1;
  }

  /** Whether `append` could append anything; how that went decides when the next attempt is. */
  async #attempt(
    file: LiveFile,
    text: Reading | undefined,
    pass: RawBytesPass,
    append: () => Promise<void>,
  ): Promise<boolean> {
    if (!this.#isTime(file, 'behind', pass)) return false;
    const before = file.length;
    await append();
    const worked = file.length > before;
    this.#wait(file, 'behind', pauseAfter(file.length + (worked ? 0 : (text?.remaining() ?? 0))));
    this.#count(file, worked);
    return worked;
  }

  async #appendFound(file: LiveFile, shown: ShownText, signal: AbortSignal): Promise<void> {
    const found = await this.#find(file, shown, signal);
    if (found === undefined) return;
    try {
      if (found.pieces !== undefined && found.pieces.length > 0) await file.mend(found.pieces);
      await this.#append(file, found);
    } finally {
      await found.rest.release();
    }
  }

  async #append(file: LiveFile, { listed, rest, common }: Pick<Found, 'listed' | 'rest' | 'common'>): Promise<void> {
    for (let at = 0; at < common; at += STEP_BYTES)
      await file.append(await rest.read(at, Math.min(common, at + STEP_BYTES)));
    if (listed !== undefined) file.note({ listedName: listed });
  }

  /** The one that was proven to be it; only if that is not enough, the service is asked for the others. */
  async *#names(file: LiveFile, signal: AbortSignal): AsyncGenerator<string, void> {
    const known = await knownName(file);
    if (known !== undefined) yield known;
    for (const name of await this.#listedNames(file, signal)) if (name !== known) yield name;
  }

  async #listedNames(file: LiveFile, signal: AbortSignal): Promise<string[]> {
    const listed = await listedFiles(this.#options.remote, file.row.jobId, signal);
    return await namesThatMayBe(listed, file.row.relativePath);
  }

  /** Goes through the listed files that may be the live file; the one that is known to be it is enough. */
  async #find(file: LiveFile, shown: ShownText | undefined, signal: AbortSignal): Promise<Found | undefined> {
    let found: Found | undefined;
    try {
      for await (const name of this.#names(file, signal)) {
        const another = await this.#hold(file, name, shown, signal);
        if (another === undefined) continue;
        found = found === undefined ? another : await common(found, another);
        if (name === file.row.listedName) return found;
      }
      return found;
    } catch (error) {
      await found?.rest.release();
      throw error;
    }
  }

  /** How the mirror compares with a listed file; undefined if that is shown in another way. */
  async *#compareWith(file: LiveFile, listed: string, shown: Shown, signal: AbortSignal): Follow<Compared | undefined> {
    const rest = this.#options.newContent();
    const isPart = typeof shown !== 'function';
    const arrival = new WholeArrival(file, isPart ? shown.from : undefined, (bytes) => rest.write(bytes));
    const content = await this.#fill(rest, () => this.#receive(file, listed, arrival, signal));
    if (content === undefined) return undefined;
    let found: Compared['found'] | undefined;
    try {
      if (isPart) found = await arrival.found(shown);
      else {
        const from = arrival.alignEnd();
        const part = yield from;
        if (part !== undefined) found = await arrival.found(await shown(from, part));
      }
    } finally {
      if (found === undefined) await content.release();
    }
    return found && { listed, rest: content, pieces: arrival.pieces, found };
  }

  /** The bytes of the listed file behind the mirror; undefined if it is another file. */
  async #hold(
    file: LiveFile,
    listed: string,
    shown: ShownText | undefined,
    signal: AbortSignal,
  ): Promise<Found | undefined> {
    const rest = this.#options.newContent();
    const arrival = new RawArrival(file, shown, (bytes) => rest.write(bytes));
    const content = await this.#fill(rest, () => this.#receive(file, listed, arrival, signal));
    return content && { listed, rest: content, common: content.length, pieces: arrival.pieces };
  }

  /** What was written, if it is wanted; else it is given back. */
  async #fill(writer: ContentWriter, isWanted: () => Promise<boolean>): Promise<Content | undefined> {
    try {
      if (await isWanted()) return await writer.finish();
    } catch (error) {
      await writer.discard();
      throw error;
    }
    await writer.discard();
    return undefined;
  }

  /** Whether all bytes of the listed file came, and it may be the live file. */
  async #receive(file: LiveFile, listed: string, arrival: Arrival, signal: AbortSignal): Promise<boolean> {
    let taken: Promise<void> = Promise.resolve();
    const sink: Sink = (bytes) => {
      taken = arrival.take(bytes);
      return taken;
    };
    try {
      await this.#options.remote.downloadFile(file.row.jobId, listed, sink, signal);
      await arrival.end();
      return true;
    } catch (error) {
      if (error instanceof AnotherFile || asJobtailError(error).policy.isRefusal) return false;
      throw error;
    } finally {
      // A download that breaks does not wait for its sink.
      await taken.catch(() => undefined);
    }
  }
}

/** The listed name that was proven to hold the file's raw bytes, if the path from the service still fits it. */
async function knownName({ row }: LiveFile): Promise<string | undefined> {
  const { listedName, relativePath } = row;
  return listedName === null ? undefined : (await namesThatMayBe([listedName], relativePath))[0];
}

function triesOf({ memory }: LiveFile): RawBytesTries {
  memory.rawBytes ??= { behind: 0, inside: 0, all: 0, refusals: 0 };
  return memory.rawBytes;
}

/** How long to wait before so many raw bytes are fetched again. */
const pauseAfter = (bytes: number) => Math.min(LONGEST_WAIT_MS, (1 + bytes / BYTES_A_SECOND) * 1_000);

/** What two listed files have in common, either of which may be the live file; the second one is given back. */
async function common(found: Found, another: Found): Promise<Found> {
  let shared = 0;
  try {
    for (let length = 1; length > 0 && shared < found.common; ) {
      const ours = await found.rest.read(shared, Math.min(found.common, shared + STEP_BYTES));
      length = commonLength(ours, await another.rest.read(shared, shared + ours.length));
      shared += length;
      if (length < ours.length) break;
    }
  } finally {
    await another.rest.release();
  }
  const same = found.pieces?.every((piece, index) => another.pieces?.[index]?.equals(piece));
  return { listed: undefined, rest: found.rest, common: shared, pieces: same ? found.pieces : undefined };
}
