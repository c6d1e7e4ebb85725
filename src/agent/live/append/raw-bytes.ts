/**
 * The raw bytes of a live file, through DownloadFileFromCluster: the authority on what its text does not show. The
 * listing names files by paths that say neither which task nor which live file they are (docs/servers.md 1.7, 4.2), so a
 * listed file is taken for the live file only if what the service shows as text is its bytes (raw-download.ts). Where
 * the mirror is the beginning of several of these, only what they have in common is taken.
 */
import { commonLength } from '../../../bytes.ts';
import { asJobtailError } from '../../../errors.ts';
import type { JobId } from '../../../job.ts';
import { endsWith, partsOf } from '../../../path-parts.ts';
import { inSlices } from '../../../slices.ts';
import type { Content, ContentWriter, Follow, Part, Remote, Sink } from '../../ports.ts';
import type { Difference } from '../match.ts';
import type { RawBytesTries } from '../memory.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { AnotherFile, RawDownload, type ShownPart } from './raw-download.ts';

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

/** What the service shows of the file: known before a raw download, or requested near the end of one. */
export type Shown = ShownPart | ((from: number, part: Part) => Promise<ShownPart>);

/**
 * What they are wanted for: to go on behind a mirror whose text fits, to decide where the text does not tell, or to mend
 * the inexact regions of a mirror that goes on without them.
 */
type Purpose = Exclude<keyof RawBytesTries, 'refusals'>;

/** A file of this size is fetched raw again after a second at the soonest; a larger one accordingly later. */
const BYTES_A_SECOND = 256 * 1024;
const MAX_WAIT_MS = 10 * 60_000;
/** So often raw bytes must have been refused, with time in between, before they are given up for now. */
const REFUSALS = 2;
const STEP_BYTES = 1024 * 1024;
/** No system has a longer one. */
const MAX_PATH_LENGTH = 4_096;

/** A listed file that the service shows as it shows the live file. */
interface Found {
  /** The listed name; undefined if the mirror is the beginning of more than one. */
  readonly listed: string | undefined;
  readonly compared: 'same' | Difference;
  /** What follows the mirror, if that is the beginning. */
  readonly rest: Content;
  /** Bytes of it that all such files have. */
  readonly common: number;
  /** The bytes of the mirror's inexact regions; undefined if the listed files differ in them. */
  readonly pieces: readonly Buffer[] | undefined;
}

export class RawBytes {
  readonly #options: RawBytesOptions;

  constructor(options: RawBytesOptions) {
    this.#options = options;
  }

  /**
   * Compares all of the mirror with the raw bytes. If it is their beginning, its inexact regions are mended and what is
   * behind it is appended; else the difference is returned. Undefined if they are not to be had now: fetched a short
   * while ago, not listed, refused, or of several listed files.
   */
  async *compare(
    file: LiveFile,
    shown: Shown,
    pass: RawBytesPass,
    purpose: Purpose,
  ): Follow<'same' | Difference | undefined> {
    if (!this.#isTime(file, purpose, pass)) return undefined;
    const found = yield* this.#find(file, shown, purpose, pass.signal);
    try {
      if (found?.compared === 'same') {
        if (found.pieces !== undefined && found.pieces.length > 0) await file.mend(found.pieces);
        // All of the mirror was compared, not only what follows the text's offset.
        if (found.pieces !== undefined) file.markCompared([]);
        await this.#append(file, found);
      }
    } finally {
      await found?.rest.release();
    }
    this.#wait(file, purpose, purpose === 'toMend' && found === undefined ? MAX_WAIT_MS : pauseAfter(file.length));
    if (purpose !== 'toMend') this.#count(file, found !== undefined);
    return found?.compared;
  }

  /**
   * Appends so many raw bytes that they go into the mirror while they arrive, if only one listed file may be the live
   * file: each of them is the right one, whether the rest comes or not. False if none could be had now.
   */
  async *extendFar(file: LiveFile, shown: ShownPart, pass: RawBytesPass): Follow<boolean> {
    if (!this.#isTime(file, 'toExtend', pass)) return false;
    const before = file.length;
    const known = await knownName(file);
    if (known === undefined || !(await this.#stream(file, known, shown, pass.signal))) {
      const [only, ...others] = await this.#listedNames(file, pass.signal);
      if (others.length > 0)
        return (yield* this.compare(file, shown, pass, 'toExtend')) === 'same' && file.length > before;
      if (only !== undefined && only !== known) await this.#stream(file, only, shown, pass.signal);
    }
    const worked = file.length > before;
    this.#wait(file, 'toExtend', pauseAfter(file.length + (worked ? 0 : (shown.texts[0]?.remaining() ?? 0))));
    this.#count(file, worked);
    return worked;
  }

  /** Whether they were asked for often enough to go on without them. */
  areRefused(file: LiveFile, final: boolean): boolean {
    return (file.memory.rawBytes?.refusals ?? 0) >= (final ? 1 : REFUSALS);
  }

  #isTime(file: LiveFile, purpose: Purpose, { final }: RawBytesPass): boolean {
    return final || this.#options.now() >= (file.memory.rawBytes?.[purpose] ?? 0);
  }

  #wait(file: LiveFile, purpose: Purpose, waitMs: number): void {
    triesOf(file)[purpose] = this.#options.now() + waitMs;
  }

  #count(file: LiveFile, worked: boolean): void {
    const tries = triesOf(file);
    tries.refusals = worked ? 0 : tries.refusals + 1;
  }

  async #append(file: LiveFile, { listed, rest, common }: Found): Promise<void> {
    for (let at = 0; at < common; at += STEP_BYTES)
      await file.append(await rest.read(at, Math.min(common, at + STEP_BYTES)));
    if (listed !== undefined) file.note({ listedName: listed });
  }

  /** Whether the listed file is the live file, whose bytes behind the mirror were then appended. */
  async #stream(file: LiveFile, listed: string, shown: ShownPart, signal: AbortSignal): Promise<boolean> {
    const download = new RawDownload(file, shown, (bytes) => file.append(bytes));
    if (!(await this.#receive(file, listed, download, signal)) || download.found !== 'same') return false;
    if (download.pieces.length > 0) await file.mend(download.pieces);
    file.note({ listedName: listed });
    return true;
  }

  /** Goes through the listed files that may be the live file; the one that was proven to be it is enough. */
  async *#find(file: LiveFile, shown: Shown, purpose: Purpose, signal: AbortSignal): Follow<Found | undefined> {
    let found: Found | undefined;
    const known = await knownName(file);
    const seen = known === undefined ? undefined : yield* this.#compareWith(file, known, shown, signal);
    if (seen !== undefined) return seen;
    const names = (await this.#listedNames(file, signal)).filter((name) => name !== known);
    try {
      for (const name of names) {
        const another = yield* this.#compareWith(file, name, shown, signal);
        if (another === undefined) continue;
        // One that differs is the live file only if there is no other, and the text does not say otherwise.
        const isIt = another.compared === 'same' || (names.length === 1 && purpose !== 'toExtend');
        if (!isIt) await another.rest.release();
        else found = found === undefined ? another : await common(found, another);
      }
      return found;
    } catch (error) {
      await found?.rest.release();
      throw error;
    }
  }

  /** How the mirror compares with a listed file; undefined if that is shown in another way. */
  async *#compareWith(file: LiveFile, listed: string, shown: Shown, signal: AbortSignal): Follow<Found | undefined> {
    const writer = this.#options.newContent();
    let isFinished = false;
    try {
      const isPart = typeof shown !== 'function';
      const download = new RawDownload(file, isPart ? shown : undefined, (bytes) => writer.write(bytes));
      if (!(await this.#receive(file, listed, download, signal))) return undefined;
      if (!isPart) {
        const from = download.alignEnd();
        const part = yield from;
        if (part === undefined || !(await download.isShownBy(await shown(from, part)))) return undefined;
      }
      const rest = await writer.finish();
      isFinished = true;
      return { listed, compared: download.found, rest, common: rest.length, pieces: download.pieces };
    } finally {
      if (!isFinished) await writer.discard();
    }
  }

  async #listedNames(file: LiveFile, signal: AbortSignal): Promise<string[]> {
    const listed = await listedFiles(this.#options.remote, file.row.jobId, signal);
    return await namesThatMayBe(listed, file.row.relativePath);
  }

  /** Whether all bytes of the listed file came, and it may be the live file. */
  async #receive(file: LiveFile, listed: string, download: RawDownload, signal: AbortSignal): Promise<boolean> {
    let taken: Promise<void> = Promise.resolve();
    const sink: Sink = (bytes) => {
      taken = download.take(bytes);
      return taken;
    };
    try {
      await this.#options.remote.downloadFile(file.row.jobId, listed, sink, signal);
      await download.end();
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

/** The listing; a service that refuses it lists nothing. */
export async function listedFiles(remote: Remote, jobId: JobId, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await remote.listChangedFiles(jobId, signal);
  } catch (error) {
    if (asJobtailError(error).policy.isRefusal) return [];
    throw error;
  }
}

/** The listed names that may be a live file: those that end in the path the service gave with its text. */
export async function namesThatMayBe(listed: readonly string[], relativePath: string | null): Promise<string[]> {
  const wanted = partsOf(relativePath ?? '');
  const last = wanted.at(-1);
  if (last === undefined) return [];
  const fitting: string[] = [];
  for await (const name of inSlices(listed)) {
    if (name.length <= MAX_PATH_LENGTH && name.endsWith(last) && endsWith(partsOf(name), wanted)) fitting.push(name);
  }
  return fitting;
}

/** The listed name that was proven to hold the file's raw bytes, if the path from the service still fits it. */
async function knownName({ row }: LiveFile): Promise<string | undefined> {
  const { listedName, relativePath } = row;
  return listedName === null ? undefined : (await namesThatMayBe([listedName], relativePath))[0];
}

function triesOf({ memory }: LiveFile): RawBytesTries {
  memory.rawBytes ??= { toExtend: 0, toDecide: 0, toMend: 0, refusals: 0 };
  return memory.rawBytes;
}

/** How long to wait before so many raw bytes are fetched again. */
const pauseAfter = (bytes: number) => Math.min(MAX_WAIT_MS, (1 + bytes / BYTES_A_SECOND) * 1_000);

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
  return { ...found, listed: undefined, common: shared, pieces: same ? found.pieces : undefined };
}
