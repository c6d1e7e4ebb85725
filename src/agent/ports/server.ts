/** What the engine needs of the server, without SOAP, HTTP or YAML. Tests run one contract over each. */
import type { JobtailError } from '../../errors.ts';
import type { JobId, LiveFileKey } from '../../job.ts';
import type { JobInformation } from '../../job-information.ts';

/**
 * The text of one live file as the service handed it out, as UTF-8 bytes (what could not be decoded by the service
 * stands there as U+FFFD). Small ones are in memory, large ones in an unlinked temporary file.
 */
export interface Content {
  readonly length: number;
  /** The bytes [start, end) (end is cut to `length`); the buffer may be shared, so it is only read. */
  read(start: number, end: number): Promise<Buffer>;
  /** Releases the memory or the file. Called exactly once, by the receiver of the content. */
  release(): Promise<void>;
}

export interface PartRequest extends LiveFileKey {
  readonly offset: number;
  /**
   * The number of bytes after which the text may be cut; never if left out. A call for several files is cut only if all
   * of them have this number.
   */
  readonly enoughBytes?: number | undefined;
}

/** The response for one live file: everything from `offset` to its end at that moment, unless less was enough. */
export interface Part extends LiveFileKey {
  readonly offset: number;
  readonly content: Content;
  /** As the service named it; often the same for two tasks (docs/dev/servers.md 1.7). */
  readonly relativePath: string | null;
  /** Only the beginning, which was enough. Empty: the text is longer than the service can send. */
  readonly isBeginning?: boolean;
}

/** What one call for parts brought. A file without an entry does not exist yet (docs/dev/servers.md 1.7). */
export interface Parts {
  readonly parts: readonly Part[];
  /** Entries that were not requested, or with an offset that is neither the requested one nor nil or 0. */
  readonly refused: number;
  /**
   * The beginning of a text that was cut: the call ended there. A response names a file after its text, so this is the
   * text of one of the files without an entry. The caller releases it.
   */
  readonly beginning?: Content | undefined;
}

/**
 * Receives bytes in order. They are only good until its promise resolves: a sink that keeps them copies them. It ends the
 * download by a JobtailError, with which the call then rejects: another error would come as a defect (`internal`).
 */
export type Sink = (bytes: Buffer) => void | Promise<void>;

/** FileTransferMethodExt (docs/dev/soap.md 2.1, rest.md 3.7). Private key and passphrase are secrets: never stored. */
export interface TransferMethod {
  readonly serverHostname: string | null;
  readonly sharedBasepath: string | null;
  readonly protocol: 'NetworkShare' | 'SftpScp' | null;
  /** Port of SSH, unless the host name has it. */
  readonly port?: number;
  readonly credentials: {
    readonly username: string | null;
    readonly privateKey: string | null;
    readonly publicKey: string | null;
    readonly passphrase?: string;
    readonly certificate?: string;
  } | null;
  /** Opaque data that EndFileTransfer must return unchanged; undefined if the service sent none. A secret. */
  readonly given?: unknown;
}

/** Capabilities and quirks of a server, stored across restarts. */
export interface CapabilityStore {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
}

export interface Listing extends ReadonlyArray<string> {
  /** By name, if reported: when the file was changed. A rewrite may keep it (docs/dev/rest.md 3.3). */
  readonly stamps?: ReadonlyMap<string, string>;
}

/**
 * The file-transfer service (docs/dev/soap.md 4.1). Every method settles, rejects only with a JobtailError, and ends
 * at once with code `aborted` when the signal fires.
 */
export interface Remote {
  /** DownloadPartsOfJobFilesFromCluster; `wanted` names each live file at most once. The caller releases the parts. */
  readParts(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts>;
  /** ListChangedFilesForJob: the names as listed, nil entries left out; empty if the list is nil. */
  listChangedFiles(jobId: JobId, signal: AbortSignal): Promise<Listing>;
  /**
   * DownloadFileFromCluster: the bytes go to `sink` while they arrive, each once. The file is complete only when the
   * promise resolves, with the number of bytes. A nil result rejects with `not-found`; what `sink` throws ends the call
   * and rejects as it is. When the promise rejects, `sink` may still have its last bytes. The response may take
   * `silentMs` to begin, or the usual limit: the service reads a file whole before it sends it.
   */
  downloadFile(jobId: JobId, path: string, sink: Sink, signal: AbortSignal, silentMs?: number): Promise<number>;
  /** GetFileTransferMethod; null if the service has none for this job. */
  getTransferMethod(jobId: JobId, signal: AbortSignal): Promise<TransferMethod | null>;
  endTransfer(jobId: JobId, method: TransferMethod, signal: AbortSignal): Promise<void>;
  /** Why the service never hands out a file of this name. Left out: there are no such names. */
  reasonAgainst?(name: string): string | undefined;
  /** Divides what is wanted so that each slice fits into one request. Left out: a request may want any number. */
  divide?(jobId: JobId, wanted: readonly PartRequest[]): readonly (readonly PartRequest[])[];
}

/** The job service (docs/dev/soap.md 10), where there is one. Its methods settle as those of `Remote`. */
export interface JobService {
  /** GetCurrentInfoForJob; rejects with `not-found` if there is none. */
  getJob(jobId: JobId, signal: AbortSignal): Promise<JobInformation>;
  /** ListJobsForCurrentUser: all jobs of the user, each once, in no order; what is beyond the limits is left out. */
  listJobs(signal: AbortSignal): Promise<readonly JobInformation[]>;
}

/** What a signed-in user shows to the service (docs/dev/servers.md 3.1, docs/dev/rest.md 4.1). */
export type Grant =
  | { readonly kind: 'session'; readonly code: string }
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'api-key'; readonly key: string };

export interface Session {
  /** The grant in force; signs in if there is none. One sign-in runs at a time, for all callers. */
  current(signal: AbortSignal): Promise<Grant>;
  /** Reports that the service refused `grant`: unless it was replaced meanwhile, the next `current` signs in again. */
  lost(grant: Grant): void;
  /** The same for a secret that each call carries; returns the error with the next attempt. */
  refused(grant: Grant, error: JobtailError): JobtailError;
  /** Whether the secret is another one than at the last sign-in; false if that is unknown. */
  hasOtherSecret(): Promise<boolean>;
}
