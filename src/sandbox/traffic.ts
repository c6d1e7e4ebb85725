/** What happened so far, for tests and people: numbers, and the last calls with what they asked for. */

import type { Operation } from '../operations.ts';
import { SERVICES } from '../remote/soap/contract.ts';
import type { SoapVersion } from './soap/request.ts';
import { jobIdOf, type SoapRequest, type TaskFileOffset } from './soap/request-schema.ts';

/** One call of a service. No session code. */
export interface RecordedCall {
  readonly operation: Operation;
  readonly version: SoapVersion;
  /** Undefined where it is about no job in particular. */
  readonly jobId: string | undefined;
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
  readonly calls = Object.fromEntries(
    Object.values(SERVICES)
      .flat()
      .map((operation) => [operation, 0]),
  ) as Record<Operation, number>;
  /** Requests for a sign-in, and how many of them were refused. */
  signIns = 0;
  signInsRefused = 0;
  /** Answers that were faults, and answers that were another status than 200 or 500. */
  faults = 0;
  httpRefusals = 0;
  /** Bytes of answers of both services. */
  bytesSent = 0;
  /** The most calls of both services that ran at the same time. */
  mostParallelCalls = 0;
  #parallel = 0;
  /** The youngest last. */
  readonly recent: RecordedCall[] = [];

  record(request: SoapRequest, details: Pick<RecordedCall, 'version' | 'atMs' | 'requestBytes'>): void {
    const { operation, body } = request;
    this.calls[operation] += 1;
    this.recent.push({
      operation,
      jobId: jobIdOf(request),
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
