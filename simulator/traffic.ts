/** What happened so far, for tests and people: numbers, and the last calls with their requests. */
import { FILE_TRANSFER_OPERATIONS, JOB_OPERATIONS, type Operation } from '../src/operations.ts';
import type { FileType, SoapVersion } from '../src/remote/soap/contract.ts';

/** The request, by the names of docs/dev/soap.md 2.5. */
interface RecordedEntry {
  readonly submittedTaskInfoId: string | null;
  readonly fileType: FileType | null;
  readonly offset: string | null;
}

/** One call, over either protocol. No session code. */
export interface RecordedCall {
  readonly operation: Operation;
  /** Of SOAP, or the other protocol. */
  readonly version: SoapVersion | 'REST';
  /** Undefined where it is about no job in particular. */
  readonly jobId: string | undefined;
  /** By the sandbox's clock. */
  readonly atMs: number;
  /** DownloadParts: in the order of the request. */
  readonly entries?: readonly (RecordedEntry | null)[];
  /** DownloadFile: the name as sent. */
  readonly path?: string | undefined;
}

const KEPT_CALLS = 10_000;

export class Traffic {
  /** Calls that the schema accepted, by operation. */
  readonly calls = Object.fromEntries(
    [...FILE_TRANSFER_OPERATIONS, ...JOB_OPERATIONS].map((operation) => [operation, 0]),
  ) as Record<Operation, number>;
  /** Requests for a sign-in, and how many of them were refused. */
  signIns = 0;
  signInsRefused = 0;
  /** The youngest last. */
  readonly recent: RecordedCall[] = [];

  record(call: RecordedCall): void {
    this.calls[call.operation] += 1;
    this.recent.push(call);
    if (this.recent.length > KEPT_CALLS) this.recent.shift();
  }
}
