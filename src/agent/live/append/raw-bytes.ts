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
import type { CapabilityStore, DirectBytes, FileParts, Part, Remote } from '../../ports.ts';
import type { Difference } from '../match.ts';
import type { FileMemory, LiveFile } from '../mirror/live-file.ts';
import type { TextDecoding } from '../text/decoding.ts';
import { Reading } from '../text/reading.ts';
import { AnotherFile, proofBy, RawDownload, RawEnd, type ShownPart, type TextProof } from './raw-download.ts';

/** The poll that requests raw bytes. */
interface RawBytesPass {
  readonly final: boolean;
  readonly signal: AbortSignal;
  readonly decoding: TextDecoding;
  readonly parts: FileParts;
}

/** What is remembered of a file. */
interface Tries {
  /** When raw bytes may be requested again, in milliseconds. */
  next: number;
  /** Consecutive refusals, but those of a last pass. */
  refusals: number;
  /** Whether the last request was refused, and the reason. */
  isRefused: boolean;
  reason: string;
  /** The path that was proven. */
  path: string | undefined;
  /** The service failed to send the file, or cannot send its text: it comes by direct transfer, where that is open. */
  isForDirect: boolean;
}

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
const SHIFT_CAPABILITY = 'task-shift';

/** A file on the server that the text of the live file matches. */
interface Found {
  readonly path: string;
  readonly compared: 'same' | Difference;
}

export class RawBytes {
  readonly #remote: Remote;
  readonly #capabilities: CapabilityStore;
  readonly #now: () => number;
  readonly #direct: DirectBytes | null;
  readonly #tries = new WeakMap<FileMemory, Tries>();

  /** `now`: monotonic clock, in milliseconds. */
  constructor(remote: Remote, capabilities: CapabilityStore, now: () => number, direct: DirectBytes | null = null) {
    this.#remote = remote;
    this.#direct = direct;
    this.#capabilities = capabilities;
    this.#now = now;
  }

  /** Whether the back-off allows a request now; the last pass does not wait for it. */
  isDue(file: LiveFile, final: boolean): boolean {
    return final || this.#now() >= this.#triesOf(file).next;
  }

  /**
   * Compares all of the mirror with the raw bytes. If it is their beginning, mends its inexact ranges and appends the
   * bytes after it; otherwise returns the difference. Undefined if raw bytes are not available: not there, refused, or
   * listed files that differ qualify. Without `shown`, a text is requested near their end. `mustGrow`: the text shows no
   * difference, so a listed file that differs is another one.
   */
  async compare(
    file: LiveFile,
    pass: RawBytesPass,
    shown: ShownPart | undefined,
    mustGrow: boolean,
  ): Promise<'same' | Difference | undefined> {
    const tries = this.#triesOf(file);
    tries.isForDirect ||= shown === undefined;
    const found = await this.#find(file, pass, shown, mustGrow);
    if (typeof found === 'object') this.#learnShift(file, found.path);
    tries.isRefused = found === undefined;
    // A last pass does not wait, so its refusals set no pause.
    if (!tries.isRefused || !pass.final) {
      const bytes = file.length + (tries.isRefused ? (shown?.text.remaining() ?? 0) : 0);
      const firstMs = (1 + bytes / BYTES_A_SECOND) * 1_000;
      tries.next = this.#now() + nominalPause(tries.refusals + 1, { firstMs, maxMs: MAX_WAIT_MS });
      tries.refusals = tries.isRefused ? tries.refusals + 1 : 0;
    }
    tries.path = typeof found === 'object' ? found.path : undefined;
    return typeof found === 'object' ? found.compared : undefined;
  }

  /** Whether raw bytes were refused often enough to go on without them. */
  areRefused(file: LiveFile, final: boolean): boolean {
    const { refusals, isRefused } = this.#triesOf(file);
    return final ? isRefused : refusals >= REFUSALS;
  }

  /** Why raw bytes were not available. */
  reasonOf(file: LiveFile): string {
    return this.#triesOf(file).reason;
  }

  /** Tries the paths that may be the live file; one that was proven before, or a likely one, suffices. */
  async #find(
    file: LiveFile,
    pass: RawBytesPass,
    shown: ShownPart | undefined,
    mustGrow: boolean,
  ): Promise<Found | 'several' | undefined> {
    const { jobId, listedName, relativePath } = file.row;
    const tries = this.#triesOf(file);
    tries.reason = 'no file on the server has the bytes that its text shows';
    const [known] = await namesThatMayBe(listedName === null ? [] : [listedName], relativePath);
    const likely = new Set([known, tries.path, ...this.#likelyPaths(file)].filter((path) => path !== undefined));
    for (const path of likely) {
      const download = await this.#compareWith(file, path, pass, shown);
      if (download !== undefined) return { path, compared: download.found };
    }
    const listed = await listedFiles(this.#remote, jobId, pass.signal);
    const names = (await namesThatMayBe(listed, relativePath)).filter((name) => !likely.has(name));
    const fitting: string[] = [];
    const contents = new Set<string>();
    // Of several, none is appended before the others are known.
    for (const name of names.length > 1 ? names : []) {
      const download = await this.#compareWith(file, name, pass, shown, false);
      if (download?.found === 'same') fitting.push(name);
      if (download?.found === 'same') contents.add(download.digest());
    }
    if (contents.size > 1) return 'several';
    const [path] = names.length > 1 ? fitting : names;
    const download = path === undefined ? undefined : await this.#compareWith(file, path, pass, shown);
    if (path === undefined || download === undefined || (mustGrow && download.found !== 'same')) return undefined;
    if (download.found === 'same' && fitting.length < 2) file.note({ listedName: path });
    return { path, compared: download.found };
  }

  #likelyPaths({ row }: LiveFile): readonly string[] {
    return likelyPaths(row, this.#capabilities.get(SHIFT_CAPABILITY));
  }

  #learnShift({ row: { taskId } }: LiveFile, path: string): void {
    const directory = partsOf(path)[0] ?? '';
    if (!/^[0-9]+$/.test(directory)) return;
    const shift = String(BigInt(taskId) - BigInt(directory));
    if (this.#capabilities.get(SHIFT_CAPABILITY) !== shift) this.#capabilities.set(SHIFT_CAPABILITY, shift);
  }

  /** Compares the mirror with a file on the server; undefined if the text does not match that file. */
  async #compareWith(
    file: LiveFile,
    path: string,
    pass: RawBytesPass,
    shown: ShownPart | undefined,
    mayAppend = true,
  ): Promise<RawDownload | undefined> {
    if (shown === undefined && !(await this.#isShownAtEnd(file, path, pass))) return undefined;
    const download = new RawDownload(file, shown, pass.decoding.server === 'other', mayAppend);
    const isReceived = await this.#receive(file, path, download, pass.signal);
    if (shown !== undefined) await this.#learn(file, download, shown, pass);
    return isReceived ? download : undefined;
  }

  /** Whether the text near the end matches, for a file that is too long to be sent as text: a download finds its end. */
  async #isShownAtEnd(file: LiveFile, path: string, pass: RawBytesPass): Promise<boolean> {
    const end = new RawEnd();
    if (!(await this.#receive(file, path, end, pass.signal))) return false;
    const { offset, bytes } = end.found();
    const part = await pass.parts.at(offset);
    if (part === undefined) return false;
    const shown = { offset, text: new Reading(part.content) };
    const { isShown, evidence } = await proofBy(shown, bytes, file, pass.decoding.server === 'other');
    await this.#learn(file, { evidence, length: file.length }, shown, pass);
    return isShown;
  }

  /** Learns how the server decodes. A contradiction counts only if the file stood still meanwhile. */
  async #learn(
    file: LiveFile,
    { evidence, length }: { readonly evidence: TextProof['evidence']; readonly length: number },
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
    decoding.learn(evidence, (reason) => file.report({ kind: 'decoder-changed', at: length, reason }));
  }

  #triesOf({ memory }: LiveFile): Tries {
    const tries = this.#tries.get(memory) ?? {
      next: 0,
      refusals: 0,
      isRefused: false,
      reason: '',
      path: undefined,
      isForDirect: false,
    };
    this.#tries.set(memory, tries);
    return tries;
  }

  /** Downloads a file; returns whether it arrived completely and may be the live file. */
  async #receive(file: LiveFile, path: string, download: RawDownload | RawEnd, signal: AbortSignal): Promise<boolean> {
    let taken: Promise<void> = Promise.resolve();
    const sink = (bytes: Buffer) => {
      taken = download.take(bytes);
      return taken;
    };
    const { jobId } = file.row;
    const tries = this.#triesOf(file);
    const from = tries.isForDirect && this.#direct?.isOpen(jobId) ? this.#direct : this.#remote;
    try {
      await from.downloadFile(jobId, path, sink, signal);
      await download.end();
      return true;
    } catch (error) {
      if (error instanceof AnotherFile) return false;
      const { policy, message } = asJobtailError(error);
      if (policy.ofOneFile === 'perhaps' || policy.isDivisible) tries.isForDirect ||= !policy.isRefusal;
      if (!policy.isRefusal) throw error;
      tries.reason = message;
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
