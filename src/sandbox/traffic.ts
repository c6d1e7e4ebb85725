/** What happened so far, for tests and people: numbers, and the last calls with what they asked for. */
import { OPERATIONS, type Operation } from '../remote/soap/contract.ts';
import type { SoapVersion } from './soap/request.ts';
import type { SoapRequest, TaskFileOffset } from './soap/request-schema.ts';

/** One call of the file-transfer service. No session code. */
export interface RecordedCall {
  readonly operation: Operation;
  readonly version: SoapVersion;
  readonly jobId: string;
  /** By the sandbox's clock. */
  readonly atMs: number;
  /** DownloadParts: what was asked for, in the order of the request. */
  readonly entries?: readonly (TaskFileOffset | null)[];
  /** DownloadFile: the name as sent. */
  readonly path?: string | undefined;
  /** Bytes of the request. */
  readonly requestBytes: number;
}

const KEPT_CALLS = 10_000;

export class Traffic {
  /** Calls that the schema accepted, by operation. */
  readonly calls = Object.fromEntries(OPERATIONS.map((operation) => [operation, 0])) as Record<Operation, number>;
  /** Requests for a sign-in, and how many of them were refused. */
  signIns = 0;
  signInsRefused = 0;
  /** Answers that were faults, and answers that were another status than 200 or 500. */
  faults = 0;
  httpRefusals = 0;
  /** Bytes of answers of the file-transfer service. */
  bytesSent = 0;
  /** The most calls of the file-transfer service that ran at the same time. */
  mostParallelCalls = 0;
  #parallel = 0;
  /** The youngest last. */
  readonly recent: RecordedCall[] = [];

  record(request: SoapRequest, details: Pick<RecordedCall, 'version' | 'atMs' | 'requestBytes'>): void {
    const { operation, body } = request;
    this.calls[operation] += 1;
    this.recent.push({
      operation,
      jobId: body.submittedJobInfoId,
      ...details,
      ...(operation === 'DownloadPartsOfJobFilesFromCluster' && { entries: entriesOf(request) }),
      ...(operation === 'DownloadFileFromCluster' && { path: body.relativeFilePath }),
    });
    if (this.recent.length > KEPT_CALLS) this.recent.shift();
  }

  begin(): void {
    this.#parallel += 1;
    this.mostParallelCalls = Math.max(this.mostParallelCalls, this.#parallel);
  }

  end(): void {
    this.#parallel -= 1;
  }
}

/** The entries of a DownloadParts request; none for another one. */
export function entriesOf(request: SoapRequest): readonly (TaskFileOffset | null)[] {
  if (request.operation !== 'DownloadPartsOfJobFilesFromCluster') return [];
  return request.body.taskFileOffsets?.TaskFileOffsetExt ?? [];
}
