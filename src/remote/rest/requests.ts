/**
 * The requests: their members are written as JSON here, because ids have 64 bits. Those for parts have a short limit, so
 * the wanted files are divided (docs/dev/rest.md 2).
 */
import type { PartRequest, TransferMethod } from '../../agent/ports.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId, TaskId } from '../../job.ts';
import { CREDENTIALS, FILE_TYPES, PROTOCOLS, REQUEST, TRANSFER_METHOD } from './contract.ts';

/** Each value is JSON. */
export type Members = Readonly<Record<string, string>>;

export function writeMembers(members: Members): string {
  return `{${Object.entries(members)
    .map(([name, json]) => `"${name}":${json}`)
    .join(',')}}`;
}

export function queryOf(members: Members): string {
  const query = new URLSearchParams();
  for (const [name, json] of Object.entries(members))
    query.set(name, json.startsWith('"') ? (JSON.parse(json) as string) : json);
  return query.toString();
}

/** The original object; after a restart, its stored part. Some releases require all of it. */
export function givenMethod({ given, serverHostname, sharedBasepath, protocol, credentials }: TransferMethod): string {
  if (typeof given === 'string') return given;
  return JSON.stringify({
    [TRANSFER_METHOD.hostname]: serverHostname ?? '',
    [TRANSFER_METHOD.basepath]: sharedBasepath ?? '',
    [TRANSFER_METHOD.protocol]: protocol === null ? undefined : PROTOCOLS[protocol],
    [TRANSFER_METHOD.credentials]:
      credentials === null
        ? undefined
        : {
            [CREDENTIALS.username]: credentials.username ?? '',
            [CREDENTIALS.privateKey]: credentials.privateKey ?? '',
            [CREDENTIALS.publicKey]: credentials.publicKey ?? '',
          },
  });
}

export function partsMembers(jobId: JobId, wanted: readonly PartRequest[]): Members {
  return { [REQUEST.jobId]: jobId, [REQUEST.offsets]: `[${wanted.map(entryOf).join(',')}]` };
}

function entryOf({ taskId, file, offset }: PartRequest): string {
  if (!Number.isSafeInteger(offset)) throw new JobtailError('usage', `the offset ${offset} is no whole number`);
  return writeMembers({
    [REQUEST.taskId]: taskId,
    [REQUEST.fileType]: String(FILE_TYPES[file]),
    [REQUEST.offset]: String(offset),
  });
}

interface RequestLimit {
  readonly maxBytes: number;
  readonly sessionBytes: number;
}

export function partsBytes(jobId: JobId, wanted: readonly PartRequest[], sessionBytes: number): number {
  const session = { [REQUEST.sessionCode]: JSON.stringify('x'.repeat(sessionBytes)) };
  return Buffer.byteLength(writeMembers({ ...partsMembers(jobId, wanted), ...session }));
}

/**
 * As few requests as possible: files of one task stay together, and tasks in their order. A task is divided only if it
 * does not fit into one request; a single file is requested whatever its length.
 */
export function divideByBytes(
  jobId: JobId,
  wanted: readonly PartRequest[],
  { maxBytes, sessionBytes }: RequestLimit,
): PartRequest[][] {
  const room = maxBytes - partsBytes(jobId, [], sessionBytes);
  const slices: PartRequest[][] = [];
  let left = 0;
  const add = (together: readonly PartRequest[]) => {
    const bytes = together.reduce((sum, request) => sum + entryOf(request).length + 1, 0);
    if (bytes > room && together.length > 1) {
      for (const request of together) add([request]);
      return;
    }
    if (slices.length === 0 || bytes > left) {
      slices.push([]);
      left = room;
    }
    slices.at(-1)?.push(...together);
    left -= bytes;
  };
  for (const together of byTask(wanted).values()) add(together);
  // A call without files is a call, too.
  return slices.length === 0 ? [[]] : slices;
}

function byTask(wanted: readonly PartRequest[]): Map<TaskId, PartRequest[]> {
  const tasks = new Map<TaskId, PartRequest[]>();
  for (const request of wanted) {
    const together = tasks.get(request.taskId);
    if (together === undefined) tasks.set(request.taskId, [request]);
    else together.push(request);
  }
  return tasks;
}
