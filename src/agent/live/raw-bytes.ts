/**
 * The raw bytes of a live file, through DownloadFileFromCluster. The listing names files by paths that say neither
 * which task nor which live file they are (field notes 1 and 4), so a listed file is taken for the live file only if
 * the mirror is its beginning and its next bytes, decoded, are what the service shows as text. Where that holds for
 * several listed files, only what they have in common is taken.
 */
import { commonLength } from '../../chunk.ts';
import { asJobtailError, type JobtailError } from '../../errors.ts';
import { type JobId, keyText } from '../../job.ts';
import { ByJob } from '../by-job.ts';
import type { Content, ContentWriter, Remote } from '../ports.ts';
import { maskRegions, overlaps } from './inexact-regions.ts';
import type { LiveFile } from './live-file.ts';
import { match } from './match.ts';
import type { Reading } from './reading.ts';

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
/** Bytes behind the mirror that are held against the text. */
const COMPARED_BYTES = 64 * 1024;
/** So often raw bytes must have been refused, with time in between, before they are given up for now. */
const REFUSALS = 2;
const STEP_BYTES = 1024 * 1024;

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

/** The download showed that the listed file is not the one that is looked for. */
class AnotherFile extends Error {}

export class RawBytes {
  readonly #options: RawBytesOptions;
  /** When the raw bytes of a live file may be fetched again. */
  readonly #notBefore = new ByJob<number>();
  /** How often in a row they could not be had. */
  readonly #refusals = new ByJob<number>();

  constructor(options: RawBytesOptions) {
    this.#options = options;
  }

  /**
   * Appends the raw bytes behind the mirror; `text` stands where the mirror ends. False if they are not to be had now:
   * fetched a short while ago, not listed, or refused by the service.
   */
  async extend(file: LiveFile, text: Reading, pass: RawBytesPass): Promise<boolean> {
    if (!this.#isTime(file, pass)) return false;
    const found = await this.#find(file, pass.signal, (rest) => looksLike(rest, text.fork()));
    const bytes = file.length + (found?.rest.length ?? text.remaining());
    this.#wait(file, Math.min(LONGEST_WAIT_MS, (1 + bytes / BYTES_A_SECOND) * 1_000));
    this.#count(file, found !== undefined && found.common > 0);
    if (found === undefined) return false;
    try {
      if (found.pieces !== undefined && found.pieces.length > 0) await file.mend(found.pieces);
      for (let at = 0; at < found.common; at += STEP_BYTES)
        await file.append(await found.rest.read(at, Math.min(found.common, at + STEP_BYTES)));
      if (found.listed !== undefined) file.note({ listedName: found.listed });
      return found.common > 0;
    } finally {
      await found.rest.release();
    }
  }

  /** Puts the raw bytes into the inexact regions of the mirror, if they can be had by now. */
  async mend(file: LiveFile, pass: RawBytesPass): Promise<void> {
    if (!this.#isTime(file, pass)) return;
    const found = await this.#find(file, pass.signal, async () => true);
    await found?.rest.release();
    if (found?.pieces === undefined) {
      this.#wait(file, LONGEST_WAIT_MS);
    } else {
      await file.mend(found.pieces);
      this.#count(file, true);
    }
  }

  /** Whether they were asked for often enough to go on without them. */
  areRefused(file: LiveFile, final: boolean): boolean {
    return (this.#refusals.get(file.jobId, keyText(file.key)) ?? 0) >= (final ? 1 : REFUSALS);
  }

  forgetJob(jobId: JobId): void {
    this.#notBefore.forgetJob(jobId);
    this.#refusals.forgetJob(jobId);
  }

  #isTime(file: LiveFile, { final }: RawBytesPass): boolean {
    return final || this.#options.now() >= (this.#notBefore.get(file.jobId, keyText(file.key)) ?? 0);
  }

  #wait(file: LiveFile, waitMs: number): void {
    this.#notBefore.set(file.jobId, keyText(file.key), this.#options.now() + waitMs);
  }

  #count(file: LiveFile, worked: boolean): void {
    const name = keyText(file.key);
    if (worked) this.#refusals.delete(file.jobId, name);
    else this.#refusals.set(file.jobId, name, (this.#refusals.get(file.jobId, name) ?? 0) + 1);
  }

  /** Goes through the listed files that may be the live file; the proven one is enough. */
  async #find(
    file: LiveFile,
    signal: AbortSignal,
    isIt: (rest: Content) => Promise<boolean>,
  ): Promise<Found | undefined> {
    let found: Found | undefined;
    try {
      const listed = await listedFiles(this.#options.remote, file.jobId, signal);
      for (const name of candidatesAmong(listed, file.row.relativePath, file.row.listedName)) {
        const another = await this.#download(file, name, signal);
        if (another === undefined) continue;
        if (await isIt(another.rest)) found = found === undefined ? another : await common(found, another);
        if (found?.rest !== another.rest) await another.rest.release();
        if (found !== undefined && name === file.row.listedName) return found;
      }
      return found;
    } catch (error) {
      await found?.rest.release();
      throw error;
    }
  }

  /** The bytes of the listed file behind the mirror; undefined if the mirror is not its beginning. */
  async #download(file: LiveFile, listed: string, signal: AbortSignal): Promise<Found | undefined> {
    const rest = this.#options.newContent();
    const regions = file.row.inexact;
    const pieces: Buffer[] = regions.map(() => Buffer.alloc(0));
    let at = 0;
    try {
      await this.#options.remote.downloadFile(
        file.jobId,
        listed,
        async (bytes) => {
          const shared = bytes.subarray(0, Math.max(0, file.length - at));
          const there = await file.read(at, at + shared.length);
          if (!there.equals(maskRegions(shared, at, regions))) throw new AnotherFile();
          for (const [index, region] of regions.entries()) {
            if (!overlaps(region, at, at + shared.length)) continue;
            const part = shared.subarray(Math.max(0, region.start - at), region.start + region.length - at);
            pieces[index] = Buffer.concat([pieces[index] ?? part.subarray(0, 0), part]);
          }
          at += bytes.length;
          if (shared.length < bytes.length) await rest.write(bytes.subarray(shared.length));
        },
        signal,
      );
      if (at < file.length) throw new AnotherFile();
      const content = await rest.finish();
      return { listed, rest: content, common: content.length, pieces };
    } catch (error) {
      await rest.discard();
      if (error instanceof AnotherFile || refusesFile(asJobtailError(error))) return undefined;
      throw error;
    }
  }
}

/** The service has no such file, or will not hand it out: other names may still do. */
export function refusesFile(error: JobtailError): boolean {
  return error.code === 'not-found' || error.code === 'fault';
}

/** The listing; a service that refuses it lists nothing. */
export async function listedFiles(remote: Remote, jobId: JobId, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await remote.listChangedFiles(jobId, signal);
  } catch (error) {
    if (refusesFile(asJobtailError(error))) return [];
    throw error;
  }
}

/** The listed names that end in the path the service gave with the text; the proven one first. */
export function candidatesAmong(
  listed: readonly string[],
  relativePath: string | null,
  proven: string | null,
): string[] {
  const wanted = partsOf(relativePath ?? '');
  const fitting = listed.filter((name) => {
    const parts = partsOf(name);
    return wanted.length > 0 && wanted.every((part, index) => parts[parts.length - wanted.length + index] === part);
  });
  return proven !== null && fitting.includes(proven) ? [proven, ...fitting.filter((name) => name !== proven)] : fitting;
}

const partsOf = (name: string) => name.split('/').filter((part) => part !== '');

/** What two listed files have in common, either of which may be the live file. */
async function common(found: Found, another: Found): Promise<Found> {
  let shared = 0;
  for (let length = 1; length > 0 && shared < found.common; ) {
    const ours = await found.rest.read(shared, Math.min(found.common, shared + STEP_BYTES));
    length = commonLength(ours, await another.rest.read(shared, shared + ours.length));
    shared += length;
    if (length < ours.length) break;
  }
  const same = found.pieces?.every((piece, index) => another.pieces?.[index]?.equals(piece));
  return { listed: undefined, rest: found.rest, common: shared, pieces: same ? found.pieces : undefined };
}

/** Whether raw bytes could be those of which the service showed `text`. */
async function looksLike(rest: Content, text: Reading): Promise<boolean> {
  if (rest.length === 0) return false;
  const found = await match(text, rest, { from: 0, to: Math.min(COMPARED_BYTES, rest.length) });
  // The text may be older than the raw bytes, and then ends before them.
  return found.kind !== 'different';
}
