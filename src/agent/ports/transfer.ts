/** Ways to files of a job that go by the server: SSH and mounted shares. Tests run one contract over each. */
import type { JobId } from '../../job.ts';
import type { FileDigest } from '../../system/files.ts';
import type { Remote, TransferMethod } from './server.ts';

/** A result file that a direct transfer is to bring: the parts of its path below the job's directory on the cluster. */
export interface DirectFile {
  readonly parts: readonly string[];
}

/** A whole file that a direct transfer brought: a regular file below the directory of its request. */
export interface DirectArrival<File extends DirectFile = DirectFile> {
  readonly file: File;
  readonly path: string;
  readonly digest?: FileDigest | undefined;
}

export type Irregular =
  | 'a named pipe'
  | 'a socket'
  | 'a device'
  | 'no regular file'
  | 'a directory'
  | 'a link to a directory'
  | 'a link to a missing file';

export interface ClusterList {
  readonly files: readonly { readonly name: string; readonly bytes: number }[];
  /** How many symbolic links there are. */
  readonly links: number;
}

export interface DirectFiles<File extends DirectFile = DirectFile> {
  readonly files: readonly File[];
  /** An own directory of the agent for files on their way; what an interrupted transfer left there is used again. */
  readonly directory: string;
  /** Where the results of earlier transfers are, under the same paths: only what changed needs to travel. */
  readonly presentDirectory: string;
  /** Bytes of the largest requested file that is there; 0 if there is none. */
  readonly largestPresentBytes: number;
  readonly maxFileBytes: number | null;
  readonly bytesPerSecond: number | null;
  /** Takes files over while others are on their way: each of them is moved away or removed. */
  onFiles(arrivals: readonly DirectArrival<File>[]): Promise<void>;
  onTooLarge(file: File): void;
  /** The host shows that there is no regular file: the service could only hang on it, or refuse it. */
  onIrregular(file: File, kind: Irregular): void;
  readonly signal: AbortSignal;
}

export interface DirectRequest<File extends DirectFile = DirectFile> extends DirectFiles<File> {
  readonly method: TransferMethod;
  /** Bytes of files that arrived so far. */
  readonly onBytes: (bytes: number) => void;
  /** Called when the host or share has shown files. */
  readonly onReached: () => void;
}

/**
 * A way to files that goes by the service (docs/dev/soap.md 2.2): one for each protocol. `fetch` resolves when
 * all files that this method can transfer were passed on; others are skipped. It rejects, with a
 * JobtailError, if the method as a whole fails, and ends at once with code `aborted` when the signal fires; files
 * passed on before count.
 */
export interface DirectTransfer {
  fetch<File extends DirectFile>(request: DirectRequest<File>): Promise<void>;
  /** Lists the files below the base path, without following links. Rejects if the list would not be complete. */
  list(request: { readonly method: TransferMethod; readonly signal: AbortSignal }): Promise<ClusterList>;
}

/** Raw bytes of live files by direct transfer. `downloadFile` is as that of `Remote`. */
export interface DirectBytes {
  readonly downloadFile: Remote['downloadFile'];
  /** Whether a direct transfer for the job may work now. */
  isOpen(jobId: JobId): boolean;
}
