/**
 * Raw downloads of a live file (DownloadFileFromCluster): the authority on bytes that the text does not show. The paths
 * of the listing name neither the task nor the kind of live file (docs/servers.md 1.7, 4.2). So a listed file counts as
 * the live file only if the text of the server shows its bytes (raw-download.ts). If several listed files qualify, only
 * their common beginning counts.
 */
import { commonLength } from '../../../bytes.ts';
import { asJobtailError } from '../../../errors.ts';
import type { JobId } from '../../../job.ts';
import { endsWith, partsOf } from '../../../safe-names.ts';
import { inSlices } from '../../../slices.ts';
import type { Content, ContentWriter, FileParts, Remote, Sink } from '../../ports.ts';
import type { Difference } from '../match.ts';
import type { FileMemory, LiveFile } from '../mirror/live-file.ts';
import type { TextEncoding } from '../text/encoding.ts';
import { Reading } from '../text/reading.ts';
import { AnotherFile, RawDownload, type ShownPart, shownBy } from './raw-download.ts';

/** The poll that requests raw bytes; the last pass (`final`) does not wait for the back-off. */
interface RawBytesPass {
  readonly final: boolean;
  readonly signal: AbortSignal;
  readonly encoding: TextEncoding;
  readonly parts: FileParts;
}

/**
 * The purpose: to extend a mirror whose text matches, to decide where the text is ambiguous, or to mend the inexact
 * ranges of a mirror that grows without them.
 */
export type Purpose = 'toExtend' | 'toDecide' | 'toMend';

/** When raw bytes may be requested again, in milliseconds, for each purpose. */
interface Tries extends Record<Purpose, number> {
  /** Consecutive failures. */
  refusals: number;
}

/** A file of this size is downloaded again after one second at the earliest, a larger one proportionally later. */
const BYTES_A_SECOND = 256 * 1024;
const MAX_WAIT_MS = 10 * 60_000;
/** Refusals, with pauses in between, after which the poll goes on without raw bytes. */
const REFUSALS = 2;
const STEP_BYTES = 1024 * 1024;
/** PATH_MAX of Linux. */
const MAX_PATH_LENGTH = 4_096;

/** A listed file that the text of the live file matches. */
interface Found {
  /** The listed name; undefined if the mirror is the beginning of more than one. */
  readonly listed: string | undefined;
  readonly compared: 'same' | Difference;
  /** The bytes after the mirror, if the mirror is the beginning of the file. */
  readonly rest: Content;
  /** Number of bytes of `rest` that all such files share. */
  readonly common: number;
  /** The bytes of the mirror's inexact regions; undefined if the listed files differ in them. */
  readonly pieces: readonly Buffer[] | undefined;
}

export class RawBytes {
  readonly #remote: Remote;
  readonly #newContent: () => ContentWriter;
  readonly #now: () => number;
  readonly #tries = new WeakMap<FileMemory, Tries>();

  /** `now`: monotonic clock, in milliseconds. */
  constructor(remote: Remote, newContent: () => ContentWriter, now: () => number) {
    this.#remote = remote;
    this.#newContent = newContent;
    this.#now = now;
  }

  /**
   * Compares all of the mirror with the raw bytes. If it is their beginning, mends its inexact ranges and appends the
   * bytes after it; otherwise returns the difference. Undefined if raw bytes are not available now: requested recently,
   * not listed, refused, or several listed files qualify. Without `shown`, a text is requested near their end.
   */
  async compare(
    file: LiveFile,
    pass: RawBytesPass,
    purpose: Purpose,
    shown?: ShownPart,
  ): Promise<'same' | Difference | undefined> {
    const tries = this.#triesOf(file);
    if (!pass.final && this.#now() < tries[purpose]) return undefined;
    const found = await this.#find(file, pass, purpose === 'toExtend', shown);
    try {
      if (found?.compared === 'same') {
        if (found.pieces !== undefined && found.pieces.length > 0) await file.mend(found.pieces);
        // All of the mirror was compared, not only what follows the text's offset.
        if (found.pieces !== undefined) file.markCompared([]);
        for (let at = 0; at < found.common; at += STEP_BYTES)
          await file.append(await found.rest.read(at, Math.min(found.common, at + STEP_BYTES)));
        if (found.listed !== undefined) file.note({ listedName: found.listed });
      }
    } finally {
      await found?.rest.release();
    }
    const textBytes = found === undefined ? (shown?.texts[0]?.remaining() ?? 0) : 0;
    const waitMs = purpose === 'toMend' && found === undefined ? MAX_WAIT_MS : pauseAfter(file.length + textBytes);
    tries[purpose] = this.#now() + waitMs;
    if (purpose !== 'toMend') tries.refusals = found === undefined ? tries.refusals + 1 : 0;
    return found?.compared;
  }

  /** Whether raw bytes were refused often enough to go on without them. */
  areRefused(file: LiveFile, final: boolean): boolean {
    return this.#triesOf(file).refusals >= (final ? 1 : REFUSALS);
  }

  /** Tries the listed files that may be the live file; one that was proven before suffices. */
  async #find(file: LiveFile, pass: RawBytesPass, isToExtend: boolean, shown?: ShownPart): Promise<Found | undefined> {
    let found: Found | undefined;
    const { jobId, listedName, relativePath } = file.row;
    const [known] = await namesThatMayBe(listedName === null ? [] : [listedName], relativePath);
    const seen = known === undefined ? undefined : await this.#compareWith(file, known, pass, isToExtend, shown);
    if (seen !== undefined) return seen;
    const listed = await listedFiles(this.#remote, jobId, pass.signal);
    const names = (await namesThatMayBe(listed, relativePath)).filter((name) => name !== known);
    const isSingle = names.length === 1;
    try {
      for (const name of names) {
        const another = await this.#compareWith(file, name, pass, isToExtend && isSingle, shown);
        if (another === undefined) continue;
        // A file that differs counts only if it is the single candidate, and the text does not contradict it.
        const isIt = another.compared === 'same' || (isSingle && !isToExtend);
        if (!isIt) await another.rest.release();
        else found = found === undefined ? another : await common(found, another);
      }
      return found;
    } catch (error) {
      await found?.rest.release();
      throw error;
    }
  }

  /**
   * Compares the mirror with a listed file; undefined if the text does not match that file. `isSure`: no other file
   * qualifies, so its bytes are appended while they arrive: each byte counts, whether the download completes or not.
   */
  async #compareWith(
    file: LiveFile,
    listed: string,
    { signal, encoding, parts }: RawBytesPass,
    isSure: boolean,
    shown: ShownPart | undefined,
  ): Promise<Found | undefined> {
    const writer = this.#newContent();
    let isFinished = false;
    try {
      const sink: Sink = (bytes) => (isSure && shown !== undefined ? file.append(bytes) : writer.write(bytes));
      const download = new RawDownload(file, shown, sink);
      if (!(await this.#receive(file, listed, download, signal))) return undefined;
      if (shown === undefined) {
        const from = download.alignEnd();
        const part = await parts.at(from);
        if (part === undefined) return undefined;
        if (!(await download.isShown(await shownBy(from, new Reading(part.content), encoding)))) return undefined;
      }
      const rest = await writer.finish();
      isFinished = true;
      return { listed, compared: download.found, rest, common: rest.length, pieces: download.pieces };
    } finally {
      if (!isFinished) await writer.discard();
    }
  }

  #triesOf({ memory }: LiveFile): Tries {
    const tries = this.#tries.get(memory) ?? { toExtend: 0, toDecide: 0, toMend: 0, refusals: 0 };
    this.#tries.set(memory, tries);
    return tries;
  }

  /** Downloads a listed file; returns whether it arrived completely and may be the live file. */
  async #receive(file: LiveFile, listed: string, download: RawDownload, signal: AbortSignal): Promise<boolean> {
    let taken: Promise<void> = Promise.resolve();
    const sink: Sink = (bytes) => {
      taken = download.take(bytes);
      return taken;
    };
    try {
      await this.#remote.downloadFile(file.row.jobId, listed, sink, signal);
      await download.end();
      return true;
    } catch (error) {
      if (error instanceof AnotherFile || asJobtailError(error).policy.isRefusal) return false;
      throw error;
    } finally {
      // A download that fails does not await its sink.
      await taken.catch(() => undefined);
    }
  }
}

/** Requests the listing; a refused listing counts as empty. */
export async function listedFiles(remote: Remote, jobId: JobId, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await remote.listChangedFiles(jobId, signal);
  } catch (error) {
    if (asJobtailError(error).policy.isRefusal) return [];
    throw error;
  }
}

/** The listed names that may be a live file: they end in the path that the server sent with the text. */
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

/** Pause before a file of this size is downloaded again, in milliseconds. */
const pauseAfter = (bytes: number) => Math.min(MAX_WAIT_MS, (1 + bytes / BYTES_A_SECOND) * 1_000);

/** The common beginning of two listed files that may both be the live file; releases the second one. */
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
