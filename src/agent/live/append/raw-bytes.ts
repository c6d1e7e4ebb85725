/**
 * Raw downloads of a live file (DownloadFileFromCluster): the authority on bytes that the text does not show. The paths
 * on the server name neither the task nor the kind of live file for sure (docs/dev/servers.md 1.7, 4.2). So a file counts as
 * the live file only if the text of the server shows its bytes (raw-download.ts). The likely paths come first, without
 * the listing: some files are never listed. If several listed files qualify, only their common beginning counts.
 */
import { commonLength } from '../../../bytes.ts';
import { asJobtailError } from '../../../errors.ts';
import type { JobId } from '../../../job.ts';
import { endsWith, partsOf } from '../../../safe-names.ts';
import { inSlices } from '../../../slices.ts';
import type { CapabilityStore, Content, ContentWriter, FileParts, Remote, Sink } from '../../ports.ts';
import type { Difference } from '../match.ts';
import type { FileMemory, LiveFile } from '../mirror/live-file.ts';
import type { TextDecoding } from '../text/decoding.ts';
import { Reading } from '../text/reading.ts';
import { AnotherFile, RawDownload, type ShownPart } from './raw-download.ts';

/** The poll that requests raw bytes; the last pass (`final`) does not wait for the back-off. */
interface RawBytesPass {
  readonly final: boolean;
  readonly signal: AbortSignal;
  readonly decoding: TextDecoding;
  readonly parts: FileParts;
}

/** Whether the raw bytes extend a mirror whose text matches, or decide where the text is ambiguous. */
export type Purpose = 'toExtend' | 'toDecide';

interface Tries {
  /** When raw bytes may be requested again, in milliseconds, for each purpose. */
  toExtend: number;
  toDecide: number;
  /** Consecutive failures, and the reason of the last one. */
  refusals: number;
  reason: string;
  /** The path that was proven. */
  path: string | undefined;
}

/** A file of this size is downloaded again after one second at the earliest, a larger one proportionally later. */
const BYTES_A_SECOND = 256 * 1024;
const MAX_WAIT_MS = 10 * 60_000;
/** Refusals, with pauses in between, after which the poll goes on without raw bytes. */
const REFUSALS = 2;
const MAX_DOUBLINGS = 10;
const STEP_BYTES = 1024 * 1024;
/** PATH_MAX of Linux. */
const MAX_PATH_LENGTH = 4_096;
/** Bytes of text that are compared to see that a file stood still. */
const COMPARED_BYTES = 64 * 1024;
/** The number of a task is that of its directory on the server, plus this (src/agent/tasks/). */
const SHIFT_CAPABILITY = 'task-shift';

/** A file on the server that the text of the live file matches. */
interface Found {
  readonly path: string;
  /** The listed name; undefined if it was not listed, or the mirror is the beginning of more than one. */
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
  readonly #capabilities: CapabilityStore;
  readonly #newContent: () => ContentWriter;
  readonly #now: () => number;
  readonly #tries = new WeakMap<FileMemory, Tries>();

  /** `now`: monotonic clock, in milliseconds. */
  constructor(remote: Remote, capabilities: CapabilityStore, newContent: () => ContentWriter, now: () => number) {
    this.#remote = remote;
    this.#capabilities = capabilities;
    this.#newContent = newContent;
    this.#now = now;
  }

  /** Whether the back-off allows a request now. */
  isDue(file: LiveFile, { final }: Pick<RawBytesPass, 'final'>, purpose: Purpose): boolean {
    return final || this.#now() >= this.#triesOf(file)[purpose];
  }

  /**
   * Compares all of the mirror with the raw bytes. If it is their beginning, mends its inexact ranges and appends the
   * bytes after it; otherwise returns the difference. Undefined if raw bytes are not available: not there, refused, or
   * several listed files qualify. Without `shown`, a text is requested near their end.
   */
  async compare(
    file: LiveFile,
    pass: RawBytesPass,
    purpose: Purpose,
    shown?: ShownPart,
  ): Promise<'same' | Difference | undefined> {
    const tries = this.#triesOf(file);
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
    if (found !== undefined) this.#learnShift(file, found.path);
    const textBytes = found === undefined ? (shown?.text.remaining() ?? 0) : 0;
    const pauseMs = pauseAfter(file.length + textBytes) * 2 ** Math.min(MAX_DOUBLINGS, tries.refusals);
    tries[purpose] = this.#now() + Math.min(MAX_WAIT_MS, pauseMs);
    tries.refusals = found === undefined ? tries.refusals + 1 : 0;
    tries.path = found?.path;
    return found?.compared;
  }

  /** Whether raw bytes were refused often enough to go on without them. */
  areRefused(file: LiveFile, final: boolean): boolean {
    return this.#triesOf(file).refusals >= (final ? 1 : REFUSALS);
  }

  /** Why raw bytes were not available. */
  reasonOf(file: LiveFile): string {
    return this.#triesOf(file).reason;
  }

  /** Tries the paths that may be the live file; one that was proven before, or a likely one, suffices. */
  async #find(file: LiveFile, pass: RawBytesPass, isToExtend: boolean, shown?: ShownPart): Promise<Found | undefined> {
    const { jobId, listedName, relativePath } = file.row;
    const tries = this.#triesOf(file);
    tries.reason = 'no file on the server has the bytes that its text shows';
    const [known] = await namesThatMayBe(listedName === null ? [] : [listedName], relativePath);
    const likely = new Set([known, tries.path, ...this.#likelyPaths(file)].filter((path) => path !== undefined));
    for (const path of likely) {
      const seen = await this.#compareWith(file, path, pass, isToExtend, shown);
      if (seen !== undefined) return { ...seen, listed: path === known ? known : undefined };
    }
    const listed = await listedFiles(this.#remote, jobId, pass.signal);
    const names = (await namesThatMayBe(listed, relativePath)).filter((name) => !likely.has(name));
    const isSingle = names.length === 1;
    let found: Found | undefined;
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

  /** Below the directory of the task, whose number is that of the task, or differs by a known shift. */
  #likelyPaths({ row: { taskId, relativePath } }: LiveFile): string[] {
    const parts = partsOf(relativePath ?? '');
    if (parts.length === 0) return [];
    const shift = this.#capabilities.get(SHIFT_CAPABILITY);
    const numbers = shift === undefined ? [] : [String(BigInt(taskId) - BigInt(shift))];
    const below = [...numbers, taskId].map((directory) => `/${[directory, ...parts].join('/')}`);
    return parts.length > 1 ? [...below, `/${parts.join('/')}`] : below;
  }

  #learnShift({ row: { taskId } }: LiveFile, path: string): void {
    const directory = partsOf(path)[0] ?? '';
    if (!/^[0-9]+$/.test(directory)) return;
    const shift = String(BigInt(taskId) - BigInt(directory));
    if (this.#capabilities.get(SHIFT_CAPABILITY) !== shift) this.#capabilities.set(SHIFT_CAPABILITY, shift);
  }

  /**
   * Compares the mirror with a file on the server; undefined if the text does not match that file. `isSure`: no other
   * file qualifies, so its bytes are appended while they arrive: each byte counts, whether the download completes or not.
   */
  async #compareWith(
    file: LiveFile,
    path: string,
    pass: RawBytesPass,
    isSure: boolean,
    shown: ShownPart | undefined,
  ): Promise<Found | undefined> {
    const writer = this.#newContent();
    let isFinished = false;
    try {
      const sink: Sink = (bytes) => (isSure && shown !== undefined ? file.append(bytes) : writer.write(bytes));
      const download = new RawDownload(file, shown, pass.decoding.server === 'other', sink);
      const isReceived = await this.#receive(file, path, download, pass.signal);
      let isProven = isReceived;
      let compared = shown;
      if (isReceived && shown === undefined) {
        const offset = download.alignEnd();
        const part = await pass.parts.at(offset);
        compared = part && { offset, text: new Reading(part.content) };
        isProven = compared !== undefined && (await download.isShown(compared));
      }
      if (compared !== undefined) await this.#learn(file, download, compared, pass);
      if (!isProven) return undefined;
      const rest = await writer.finish();
      isFinished = true;
      return { path, listed: path, compared: download.found, rest, common: rest.length, pieces: download.pieces };
    } finally {
      if (!isFinished) await writer.discard();
    }
  }

  /** Learns how the server decodes. A contradiction counts only if the file stood still meanwhile. */
  async #learn(
    file: LiveFile,
    { evidence }: RawDownload,
    { offset, text }: ShownPart,
    { decoding, parts }: RawBytesPass,
  ): Promise<void> {
    if (evidence === undefined || evidence === decoding.server) return;
    if (evidence === 'other') {
      const again = await parts.at(offset);
      if (again?.content.length !== text.remaining()) return;
      const before = await text.fork().text(COMPARED_BYTES);
      if (!before.equals(await again.content.read(0, COMPARED_BYTES))) return;
    }
    decoding.learn(evidence, (reason) => file.report({ kind: 'decoder-changed', at: file.length, reason }));
  }

  #triesOf({ memory }: LiveFile): Tries {
    const tries = this.#tries.get(memory) ?? { toExtend: 0, toDecide: 0, refusals: 0, reason: '', path: undefined };
    this.#tries.set(memory, tries);
    return tries;
  }

  /** Downloads a file; returns whether it arrived completely and may be the live file. */
  async #receive(file: LiveFile, path: string, download: RawDownload, signal: AbortSignal): Promise<boolean> {
    let taken: Promise<void> = Promise.resolve();
    const sink: Sink = (bytes) => {
      taken = download.take(bytes);
      return taken;
    };
    try {
      await this.#remote.downloadFile(file.row.jobId, path, sink, signal);
      await download.end();
      return true;
    } catch (error) {
      if (error instanceof AnotherFile) return false;
      const { policy, message } = asJobtailError(error);
      if (!policy.isRefusal) throw error;
      this.#triesOf(file).reason = message;
      return false;
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
const pauseAfter = (bytes: number) => (1 + bytes / BYTES_A_SECOND) * 1_000;

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
