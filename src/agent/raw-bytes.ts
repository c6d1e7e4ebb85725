/**
 * The raw bytes of a live file, through DownloadFileFromCluster. The listing names files by paths that say neither
 * which task nor which live file they are (field notes 1 and 4), so a listed file is taken for the live file only if
 * the mirror is its beginning and its next bytes, decoded, are what the service shows as text.
 */
import { asJobtailError, type JobtailError } from '../errors.ts';
import type { LiveFile } from './live-file.ts';
import { match } from './match.ts';
import type { Content, ContentWriter, Remote } from './ports.ts';
import type { Reading } from './reading.ts';

export interface RawBytesOptions {
  readonly remote: Remote;
  readonly newContent: () => ContentWriter;
  readonly now: () => number;
}

/** A file of this size is fetched raw again after a second at the soonest; a larger one accordingly later. */
const BYTES_A_SECOND = 256 * 1024;
const LONGEST_WAIT_MS = 10 * 60_000;
/** Bytes behind the mirror that are held against the text. */
const COMPARED_BYTES = 64 * 1024;

/** The download showed that the listed file is not the one that is looked for. */
class AnotherFile extends Error {}

export class RawBytes {
  readonly #options: RawBytesOptions;
  /** When the raw bytes of a live file may be fetched again. */
  readonly #notBefore = new Map<string, number>();

  constructor(options: RawBytesOptions) {
    this.#options = options;
  }

  /**
   * Appends the raw bytes behind the mirror; `text` stands where the mirror ends. False if they are not to be had now:
   * fetched a short while ago, not listed, or refused by the service.
   */
  async extend(file: LiveFile, text: Reading, options: { final: boolean; signal: AbortSignal }): Promise<boolean> {
    const name = `${file.jobId}/${file.key.taskId}/${file.key.file}`;
    if (!options.final && this.#options.now() < (this.#notBefore.get(name) ?? 0)) return false;
    for (const listed of await this.#candidates(file, options.signal)) {
      const rest = await this.#restOf(file, listed, options.signal);
      if (rest === undefined) continue;
      try {
        this.#notBefore.set(name, this.#options.now() + waitAfter(file.length + rest.length));
        if (!(await looksLike(rest, text.fork()))) continue;
        await appendAll(file, rest);
        file.note({ listedName: listed });
        return true;
      } finally {
        await rest.release();
      }
    }
    this.#notBefore.set(name, this.#options.now() + waitAfter(file.length + text.remaining()));
    return false;
  }

  /** The listed names that may hold the file, the proven one first. */
  async #candidates(file: LiveFile, signal: AbortSignal): Promise<string[]> {
    const { relativePath, listedName } = file.row;
    const listed = await this.#options.remote.listChangedFiles(file.jobId, signal);
    return candidatesAmong(listed, relativePath, listedName);
  }

  /** The bytes of the listed file behind the mirror; undefined if the mirror is not its beginning. */
  async #restOf(file: LiveFile, listed: string, signal: AbortSignal): Promise<Content | undefined> {
    const rest = this.#options.newContent();
    let at = 0;
    try {
      await this.#options.remote.downloadFile(
        file.jobId,
        listed,
        async (bytes) => {
          const shared = Math.min(bytes.length, Math.max(0, file.length - at));
          if (shared > 0 && !(await file.read(at, at + shared)).equals(bytes.subarray(0, shared)))
            throw new AnotherFile();
          at += bytes.length;
          if (shared < bytes.length) await rest.write(bytes.subarray(shared));
        },
        signal,
      );
      if (at >= file.length) return await rest.finish();
      await rest.discard();
      return undefined;
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

function waitAfter(bytes: number): number {
  return Math.min(LONGEST_WAIT_MS, (1 + bytes / BYTES_A_SECOND) * 1_000);
}

/** Whether raw bytes could be those of which the service showed `text`. */
async function looksLike(rest: Content, text: Reading): Promise<boolean> {
  if (rest.length === 0) return false;
  const found = await match(text, rest, 0, Math.min(COMPARED_BYTES, rest.length));
  // The text may be older than the raw bytes, and then ends before them.
  return found.kind !== 'different';
}

async function appendAll(file: LiveFile, rest: Content): Promise<void> {
  for (let at = 0; at < rest.length; ) {
    const bytes = await rest.read(at, at + 1024 * 1024);
    await file.append(bytes);
    at += bytes.length;
  }
}
