/**
 * The raw file of a live file (DownloadFileFromCluster): the authority on bytes that the text does not show. A file on the
 * server counts as the live file only if the text shows its bytes. The likely paths come first, without the listing: some
 * files are never listed. Several listed files that fit prove nothing unless they have the same bytes.
 */
import { createHash } from 'node:crypto';
import type { PollCalls, RawFile, RawOutcome } from '../../agent/ports/live-source.ts';
import type { CapabilityStore, Part, Sink } from '../../agent/ports/server.ts';
import type { DirectBytes } from '../../agent/ports/transfer.ts';
import { GrowingBuffer } from '../../bytes.ts';
import { asJobtailError, EXIT, JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { likelyPaths, listedOrNone, namesThatMayBe, SHIFT_CAPABILITY, shiftOf } from '../../live-paths.ts';
import { placeWithoutMark } from './blocks.ts';
import type { TextDecoding } from './decoding.ts';
import { COMPARED_BYTES, proofBy, type TextProof } from './proof.ts';
import type { TextBytes } from './text-bytes.ts';

/** Bytes at the end of a file that is too long to be sent as text which are compared with their text. */
const END_BYTES = 16 * 1024;
const NOWHERE = 'no file on the server has the bytes that its text shows';
const SEVERAL = 'several listed files that differ have the bytes that its text shows';

/** What is remembered of the raw file of one live file. */
export interface RawMemory {
  /** The path that was proven. */
  path: string | undefined;
  /** The service failed to send the file, or cannot send its text: it comes by direct transfer, where that is open. */
  isForDirect: boolean;
  /** Its raw bytes were refused, so a long text is requested to its end. */
  wantsWholeText: boolean;
}

interface RawTextOptions {
  readonly jobId: JobId;
  readonly text: TextBytes;
  readonly memory: RawMemory;
  readonly listedName: string | null;
  /** Requests its text from another offset on. */
  readonly textFrom: (offset: number) => Promise<Part | undefined>;
  readonly calls: PollCalls;
  readonly decoding: TextDecoding;
  readonly capabilities: CapabilityStore;
  readonly direct: DirectBytes | null;
}

/** The file is not the live file: the download is cancelled; this is no failure. */
class AnotherFile extends JobtailError {
  constructor() {
    super('aborted', 'the listed file is another one');
  }
}

export class RawText implements RawFile {
  readonly #options: RawTextOptions;
  #reason = NOWHERE;

  constructor(options: RawTextOptions) {
    this.#options = options;
  }

  async download(begin: () => Sink): Promise<RawOutcome> {
    const { text, memory, capabilities } = this.#options;
    memory.isForDirect ||= this.#isUnsendable;
    const likely = await this.#likelyPaths();
    const known = await this.#first(likely, begin);
    const listed = known === undefined ? await this.#listed(likely, begin) : undefined;
    const found = known ?? listed;
    memory.path = found?.path;
    memory.wantsWholeText = found === undefined;
    if (found === undefined && this.#isUnsendable)
      throw new JobtailError('stuck', `longer than this service can send as text: ${this.#reason}`, {
        hint: 'the raw download failed; it is repeated with back-off',
      });
    if (found === undefined) return { isThere: false, reason: this.#reason };
    // An empty file may be that of any task.
    const shift = found.bytes > 0 ? shiftOf(text.part, found.path) : undefined;
    if (shift !== undefined) capabilities.set(SHIFT_CAPABILITY, shift);
    return { isThere: true, isListed: listed !== undefined, listedName: listed?.listedAs };
  }

  /** Whether the service cannot send the text: the bytes near the end of the file prove it. */
  get #isUnsendable(): boolean {
    const { part } = this.#options.text;
    return part.isBeginning === true && part.content.length === 0;
  }

  /** The path that was proven before, and those that are likely: the first one that the text shows suffices. */
  async #likelyPaths(): Promise<Set<string>> {
    const { text, listedName, memory, capabilities } = this.#options;
    const known = await namesThatMayBe(listedName === null ? [] : [listedName], text.relativePath);
    const proven = memory.path === undefined ? [] : [memory.path];
    return new Set([...known, ...proven, ...likelyPaths(text.part, capabilities.get(SHIFT_CAPABILITY))]);
  }

  async #first(paths: Iterable<string>, begin: () => Sink) {
    for (const path of paths) {
      const bytes = await this.#bring(path, begin());
      if (bytes !== undefined) return { path, bytes };
    }
    return undefined;
  }

  async #listed(tried: ReadonlySet<string>, begin: () => Sink) {
    const { jobId, text, calls } = this.#options;
    const listed = await listedOrNone(calls.whole.listChangedFiles(jobId, calls.signal));
    const names = (await namesThatMayBe(listed, text.relativePath)).filter((name) => !tried.has(name));
    const fitting: string[] = [];
    const contents = new Set<string>();
    // None is sent on before the others are known.
    for (const name of names.length > 1 ? names : []) {
      const hash = createHash('sha256');
      if ((await this.#bring(name, (bytes) => void hash.update(bytes))) === undefined) continue;
      fitting.push(name);
      contents.add(hash.digest('hex'));
    }
    if (contents.size > 1) {
      this.#reason = SEVERAL;
      return undefined;
    }
    const found = await this.#first(names.length > 1 ? fitting : names, begin);
    return found && { ...found, listedAs: fitting.length < 2 ? found.path : null };
  }

  /** Sends the file at a path on; returns its length, or undefined if it is not the live file, or refused. */
  async #bring(path: string, sink: Sink): Promise<number | undefined> {
    const { text } = this.#options;
    if (this.#isUnsendable) return (await this.#isShownAtEnd(path)) ? await this.#receive(path, sink) : undefined;
    const waiting = new GrowingBuffer();
    const proofs: TextProof[] = [];
    let at = 0;
    const prove = async () => {
      const isOtherwise = this.#options.decoding.server === 'other';
      const proof = await proofBy(text.part.content, waiting.view().subarray(0, COMPARED_BYTES), isOtherwise);
      proofs.push(proof);
      if (!proof.isShown) throw new AnotherFile();
      await sink(waiting.take());
      waiting.free();
    };
    const take: Sink = async (bytes) => {
      const before = Math.min(bytes.length, Math.max(0, text.from - at));
      at += bytes.length;
      if (proofs.length > 0) return await sink(bytes);
      if (before > 0) await sink(bytes.subarray(0, before));
      waiting.append(bytes.subarray(before));
      if (waiting.length >= COMPARED_BYTES) await prove();
    };
    const length = await this.#receive(path, take, async () => {
      if (proofs.length === 0) await prove();
    });
    for (const { evidence } of proofs) await this.#learn(evidence, text.part);
    return length;
  }

  /** Whether the text near the end matches, for a file that is too long to be sent as text: a download finds its end. */
  async #isShownAtEnd(path: string): Promise<boolean> {
    const { decoding } = this.#options;
    let end: Buffer = Buffer.alloc(0);
    const sink: Sink = (bytes) => {
      end = Buffer.concat([end, bytes]).subarray(-END_BYTES);
    };
    const length = await this.#receive(path, sink);
    if (length === undefined) return false;
    const skipped = placeWithoutMark(end);
    const part = await this.#options.textFrom(length - end.length + skipped);
    if (part === undefined) return false;
    try {
      const { isShown, evidence } = await proofBy(part.content, end.subarray(skipped), decoding.server === 'other');
      await this.#learn(evidence, part);
      return isShown;
    } finally {
      await part.content.release();
    }
  }

  /** Learns how the server decodes. A contradiction counts only if the file stood still meanwhile. */
  async #learn(evidence: TextProof['evidence'], { offset, content }: Part): Promise<void> {
    const { decoding } = this.#options;
    if (evidence === undefined || evidence === decoding.server) return;
    if (evidence === 'other') {
      const again = await this.#options.textFrom(offset);
      const [before, after] = [content, again?.content].map((each) => each?.read(0, COMPARED_BYTES));
      const isSame =
        again?.content.length === content.length && (await before)?.equals((await after) ?? Buffer.alloc(0));
      await again?.content.release();
      if (isSame !== true) return;
    }
    decoding.learn(evidence);
  }

  /** Downloads a file; returns its length, or undefined if it is refused or another one. */
  async #receive(path: string, sink: Sink, atEnd: () => Promise<void> = async () => {}): Promise<number | undefined> {
    const { jobId, memory, calls, direct } = this.#options;
    let taken: Promise<void> = Promise.resolve();
    let isStarted = false;
    const keep: Sink = (bytes) => {
      isStarted = true;
      taken = Promise.resolve(sink(bytes));
      return taken;
    };
    const isDirect = memory.isForDirect && direct?.isOpen(jobId) === true;
    const from = isDirect ? direct : calls.whole;
    try {
      const length = await from.downloadFile(jobId, path, keep, calls.signal);
      await atEnd();
      return length;
    } catch (error) {
      if (error instanceof AnotherFile) return undefined;
      const { policy, message, hint } = asJobtailError(error);
      if (isDirect && !isStarted && (policy.isRefusal || policy.exitCode === EXIT.service)) {
        // It finds no link, and no file in a directory that the listing leaves out; or its host does not work.
        memory.isForDirect = false;
        return await this.#receive(path, sink, atEnd);
      }
      if (policy.ofOneFile === 'perhaps' || policy.isDivisible) {
        memory.isForDirect ||= !policy.isRefusal;
        memory.wantsWholeText = true;
      }
      if (!policy.isRefusal) throw error;
      this.#reason = hint === undefined ? message : `${message}: ${hint}`;
      return undefined;
    } finally {
      // A download that fails does not await its sink.
      await taken.catch(() => undefined);
    }
  }
}
