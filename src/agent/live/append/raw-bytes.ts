/**
 * Raw downloads of a live file (DownloadFileFromCluster): the authority on bytes that the text does not show. The paths
 * on the server name neither the task nor the kind of live file for sure (docs/dev/servers.md 1.7, 4.2). So a file counts as
 * the live file only if the text of the server shows its bytes (raw-download.ts). The likely paths come first, without
 * the listing: some files are never listed. Several listed files count only if they have the same bytes.
 */
import { nominalPause } from '../../../back-off.ts';
import { asJobtailError } from '../../../errors.ts';
import type { JobId } from '../../../job.ts';
import { endsWith, partsOf } from '../../../safe-names.ts';
import { inSlices } from '../../../slices.ts';
import type { LiveFileRow } from '../../../store/rows.ts';
import type { CapabilityStore, Part, Remote } from '../../ports/server.ts';
import type { DirectBytes } from '../../ports/transfer.ts';
import type { Difference } from '../match.ts';
import type { FileMemory } from '../memory.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import type { FileContext, Shown } from '../steps.ts';
import { AnotherFile, proofBy, RawDownload, RawEnd, type TextProof } from './raw-download.ts';

/** A file of this size is downloaded again after one second at the earliest, a larger one proportionally later. */
const BYTES_A_SECOND = 256 * 1024;
const MAX_WAIT_MS = 10 * 60_000;
/** Refusals, with pauses in between, after which the poll goes on without raw bytes. */
const REFUSALS = 2;
/** PATH_MAX of Linux. */
const MAX_PATH_LENGTH = 4_096;
/** Bytes of text that are compared to see that a file stood still. */
const COMPARED_BYTES = 64 * 1024;
/** The number of a task is that of its directory on the server, plus this (src/agent/tasks/). */
export const SHIFT_CAPABILITY = 'task-shift';

export class RawBytes {
  readonly #capabilities: CapabilityStore;
  readonly #now: () => number;
  readonly #direct: DirectBytes | null;

  /** `now`: monotonic clock, in milliseconds. */
  constructor(capabilities: CapabilityStore, now: () => number, direct: DirectBytes | null = null) {
    this.#direct = direct;
    this.#capabilities = capabilities;
    this.#now = now;
  }

  /** Whether the back-off allows a request now; the last pass does not wait. A file that changed does not wait longer each time. */
  isDue({ raw }: FileMemory, isFinal: boolean, shown?: Shown): boolean {
    const isNew = shown !== undefined && raw.shownEnd !== undefined && endOf(shown) !== raw.shownEnd;
    const failures = raw.refusals + (isNew ? 0 : raw.unchanged);
    return isFinal || this.#now() >= raw.at + nominalPause(failures, { firstMs: raw.firstMs, maxMs: MAX_WAIT_MS });
  }

  /**
   * Compares all of the mirror with the raw bytes. If it is their beginning, mends its inexact ranges and appends the
   * bytes after it; otherwise returns the difference. Undefined if raw bytes are not available: not there, refused, or
   * listed files that differ qualify. Without `shown`, a text is requested near their end.
   */
  async compare(file: LiveFile, pass: FileContext, shown: Shown | undefined): Promise<'same' | Difference | undefined> {
    const tries = file.memory.raw;
    tries.isForDirect ||= shown === undefined;
    tries.reason = 'no file on the server has the bytes that its text shows';
    const { length } = file;
    const likely = await this.#likelyPaths(file);
    const found = (await this.#first(file, likely, pass, shown)) ?? (await this.#listed(file, likely, pass, shown));
    const download = found === 'several' ? undefined : found;
    tries.isRefused = found === undefined;
    if (download !== undefined) tries.reason = '';
    if (found === 'several') tries.reason = 'several listed files that differ have the bytes that its text shows';
    // A last pass does not wait, so its refusals set no pause.
    if (!tries.isRefused || !pass.isFinal) {
      const bytes = file.length + (download === undefined ? (shown?.content.length ?? 0) : 0);
      tries.firstMs = (1 + bytes / BYTES_A_SECOND) * 1_000;
      tries.at = this.#now();
      // Of several files, each comparison costs them all, so that another text does not shorten the pause.
      tries.shownEnd = found === 'several' || shown === undefined ? undefined : endOf(shown);
      const isUseless = found === 'several' || (found?.found === 'same' && file.length === length);
      tries.unchanged = isUseless ? tries.unchanged + 1 : 0;
      tries.refusals = tries.isRefused ? tries.refusals + 1 : 0;
    }
    tries.path = download?.path;
    // An empty file may be that of any task.
    const shift = download && file.length > 0 ? shiftOf(file.row, download.path) : undefined;
    if (shift !== undefined && shift !== this.#capabilities.get(SHIFT_CAPABILITY))
      this.#capabilities.set(SHIFT_CAPABILITY, shift);
    return download?.found;
  }

  /** Whether raw bytes were refused often enough to go on without them. */
  areRefused({ memory }: LiveFile, isFinal: boolean): boolean {
    return isFinal ? memory.raw.isRefused : memory.raw.refusals >= REFUSALS;
  }

  /** The path that was proven before, and those that are likely: the first one that the text shows suffices. */
  async #likelyPaths({ row, memory }: LiveFile): Promise<Set<string>> {
    const { listedName, relativePath } = row;
    const known = await namesThatMayBe(listedName === null ? [] : [listedName], relativePath);
    const guessed = likelyPaths(row, this.#capabilities.get(SHIFT_CAPABILITY));
    return new Set([...known, ...(memory.raw.path === undefined ? [] : [memory.raw.path]), ...guessed]);
  }

  async #first(file: LiveFile, paths: Iterable<string>, pass: FileContext, shown: Shown | undefined) {
    for (const path of paths) {
      const download = await this.#compareWith(file, path, pass, shown);
      if (download !== undefined) return download;
    }
    return undefined;
  }

  /** The listed file that the text shows, and that begins with the mirror; of several, all must have the same bytes. */
  async #listed(file: LiveFile, tried: ReadonlySet<string>, pass: FileContext, shown: Shown | undefined) {
    const { jobId, relativePath } = file.row;
    const listed = await listedFiles(pass.whole, jobId, pass.signal);
    const names = (await namesThatMayBe(listed, relativePath)).filter((name) => !tried.has(name));
    const fitting: string[] = [];
    const contents = new Set<string>();
    // None is appended before the others are known.
    for (const name of names.length > 1 ? names : []) {
      const download = await this.#compareWith(file, name, pass, shown, false);
      if (download?.found !== 'same') continue;
      fitting.push(name);
      contents.add(download.digest());
    }
    if (contents.size > 1) return 'several';
    const download = await this.#first(file, names.length > 1 ? fitting : names, pass, shown);
    if (download?.found !== 'same') return undefined;
    if (fitting.length < 2 && file.length > 0) file.note({ listedName: download.path });
    return download;
  }

  /** Compares the mirror with a file on the server; undefined if the text does not match that file. */
  async #compareWith(
    file: LiveFile,
    path: string,
    pass: FileContext,
    shown: Shown | undefined,
    mayAppend = true,
  ): Promise<RawDownload | undefined> {
    if (shown === undefined && !(await this.#isShownAtEnd(file, path, pass))) return undefined;
    const download = new RawDownload(file, path, { shown, isOtherwise: pass.decoding.server === 'other', mayAppend });
    const isReceived = await this.#receive(file, path, download, pass);
    if (shown !== undefined) await this.#learn(file, download.evidence, shown, pass);
    return isReceived ? download : undefined;
  }

  /** Whether the text near the end matches, for a file that is too long to be sent as text: a download finds its end. */
  async #isShownAtEnd(file: LiveFile, path: string, pass: FileContext): Promise<boolean> {
    const end = new RawEnd();
    if (!(await this.#receive(file, path, end, pass))) return false;
    const { offset, bytes } = end.found();
    const part = await pass.parts.at(offset);
    if (part === undefined) return false;
    const { isShown, evidence } = await proofBy(part, bytes, file, pass.decoding.server === 'other');
    await this.#learn(file, evidence, part, pass);
    return isShown;
  }

  /** Learns how the server decodes. A contradiction counts only if the file stood still meanwhile. */
  async #learn(
    file: LiveFile,
    evidence: TextProof['evidence'],
    { offset, content }: Shown,
    { decoding, parts }: FileContext,
  ): Promise<void> {
    if (evidence === undefined || evidence === decoding.server) return;
    if (evidence === 'other') {
      const again = await parts.at(offset);
      if (again?.content.length !== content.length) return;
      const before = await content.read(0, COMPARED_BYTES);
      if (!before.equals(await again.content.read(0, COMPARED_BYTES))) return;
    }
    decoding.learn(evidence, file);
  }

  /** Downloads a file; returns whether it arrived completely and may be the live file. */
  async #receive(file: LiveFile, path: string, download: RawDownload | RawEnd, pass: FileContext): Promise<boolean> {
    let taken: Promise<void> = Promise.resolve();
    const sink = (bytes: Buffer) => (taken = download.take(bytes));
    const { jobId } = file.row;
    const tries = file.memory.raw;
    const from = tries.isForDirect && this.#direct?.isOpen(jobId) ? this.#direct : pass.whole;
    try {
      await from.downloadFile(jobId, path, sink, pass.signal);
      await download.end();
      return true;
    } catch (error) {
      if (error instanceof AnotherFile) return false;
      const { policy, message, hint } = asJobtailError(error);
      if (policy.ofOneFile === 'perhaps' || policy.isDivisible) tries.isForDirect ||= !policy.isRefusal;
      if (!policy.isRefusal) throw error;
      tries.reason = hint === undefined ? message : `${message}: ${hint}`;
      return false;
    } finally {
      // A download that fails does not await its sink.
      await taken.catch(() => undefined);
    }
  }
}

const endOf = ({ offset, content }: Shown) => offset + content.length;

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

/** Paths below the directory of the task, whose number is that of the task, or differs by a known shift. */
export function likelyPaths(
  { taskId, relativePath }: Part | LiveFileRow,
  shift: string | undefined,
): readonly string[] {
  const parts = partsOf(relativePath ?? '');
  if (parts.length === 0) return [];
  const numbers = shift === undefined ? [] : [String(BigInt(taskId) - BigInt(shift))];
  const below = [...numbers, taskId].map((directory) => `/${[directory, ...parts].join('/')}`);
  return parts.length > 1 ? [...below, `/${parts.join('/')}`] : below;
}

/** The number of a task less that of the directory in which its file is; undefined if the path begins otherwise. */
export function shiftOf({ taskId }: LiveFileRow, path: string): string | undefined {
  const directory = partsOf(path)[0] ?? '';
  return /^[0-9]+$/.test(directory) ? String(BigInt(taskId) - BigInt(directory)) : undefined;
}
