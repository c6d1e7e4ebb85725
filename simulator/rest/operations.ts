/** The operations of a release (docs/dev/rest.md 1.2): from a request to its response. */

import type { FileTransferOperation, Operation } from '../../src/operations.ts';
import { type Address, REQUEST } from '../../src/remote/rest/contract.ts';
import type { Release } from '../../src/remote/rest/releases.ts';
import type { Answer } from '../exchange.ts';
import type { AskedPart } from '../operations/live-parts.ts';
import type { Arguments } from './arguments.ts';
import type { RestCall } from './call.ts';
import { listing, wholeFile } from './files.ts';
import { fileOfType, parts } from './parts.ts';
import { RestFailure, unreadable } from './problems.ts';
import { wordingOf } from './releases.ts';
import { closeTransfer, endTransfer, requestKey } from './transfers.ts';

/** One request, read. */
export interface RestRequest {
  readonly operation: Operation;
  readonly address: Address;
  readonly given: Arguments;
  /** The empty text if there is none: the release may want it in a header. */
  readonly sessionCode: string;
  /** Undefined for the jobs of the user. */
  readonly jobId: string | undefined;
  /** Parts: the requested ones; null without a list. */
  readonly asked: readonly (AskedPart | null)[] | null;
  /** A whole file: its requested name. */
  readonly name: string | undefined;
}

/** Reads what an operation takes. Throws ASP.NET's own problem for what cannot be read. */
export function readRequest(
  operation: Operation,
  { address, given, release }: { readonly address: Address; readonly given: Arguments; readonly release: Release },
): RestRequest {
  const name = operation === 'DownloadFileFromCluster' ? (given.text(REQUEST.path) ?? '') : undefined;
  const { maxNameLength } = release;
  if (name !== undefined && name.length > maxNameLength) {
    throw unreadable(REQUEST.path, wordingOf('tooLongName', release.name).text.replace('{0}', String(maxNameLength)));
  }
  const isParts = operation === 'DownloadPartsOfJobFilesFromCluster';
  return {
    operation,
    address,
    given,
    sessionCode: given.text(REQUEST.sessionCode) ?? '',
    jobId: operation === 'ListJobsForCurrentUser' ? undefined : given.long(REQUEST.jobId),
    asked: isParts ? (given.list(REQUEST.offsets)?.map(askedPart) ?? null) : [],
    name,
  };
}

function askedPart(entry: Arguments | null): AskedPart | null {
  if (entry === null) return null;
  const file = fileOfType(entry.long(REQUEST.fileType));
  return { taskId: entry.long(REQUEST.taskId), file, offset: BigInt(entry.long(REQUEST.offset)) };
}

/** Bytes of a body (docs/dev/rest.md 2.1). */
export function maxBytesOf(operation: Operation, release: Release): number {
  switch (operation) {
    case 'DownloadPartsOfJobFilesFromCluster':
      return release.maxPartsBytes;
    case 'DownloadFileFromCluster':
      return release.maxFileBytes;
    case 'ListJobsForCurrentUser':
      return release.maxJobsBytes;
    case 'EndFileTransfer':
      return release.maxEndBytes;
    default:
      return release.maxReadBytes;
  }
}

/** Runs an operation on the files of a job. */
export async function runOperation(
  operation: FileTransferOperation,
  request: RestRequest,
  call: RestCall,
): Promise<Answer> {
  switch (operation) {
    case 'GetFileTransferMethod':
      return requestKey(call);
    case 'EndFileTransfer':
      return request.address.path.endsWith('/EndFileTransfer')
        ? endTransfer(request.given, call)
        : closeTransfer(request.given, call);
    case 'DownloadPartsOfJobFilesFromCluster':
      if (request.asked === null) throw new RestFailure('nullList');
      return parts(request.asked, call);
    case 'ListChangedFilesForJob':
      return listing(call);
    case 'DownloadFileFromCluster':
      return wholeFile(request.name ?? '', call);
  }
}
