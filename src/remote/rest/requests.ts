/** The requests, written as JSON here: ids have 64 bits. Those for parts are divided (docs/dev/rest.md 2). */
import type { PartRequest, TransferMethod } from '../../agent/ports/server.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { CREDENTIALS, FILE_TYPES, PROTOCOLS, REQUEST, TRANSFER_METHOD } from './contract.ts';
import { ROWS, valuesOf } from './releases.ts';

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

/** The longest request for parts that each release accepts. */
const MAX_PARTS_BYTES = Math.min(...valuesOf(ROWS.maxPartsBytes));

/** As few requests as possible, in their order; a single file is requested whatever its length. */
export function divideByBytes(jobId: JobId, wanted: readonly PartRequest[], sessionBytes: number): PartRequest[][] {
  const session = { [REQUEST.sessionCode]: JSON.stringify('x'.repeat(sessionBytes)) };
  const room = MAX_PARTS_BYTES - writeMembers({ ...partsMembers(jobId, []), ...session }).length;
  let slice: PartRequest[] = [];
  // A call without files is a call, too.
  const slices = [slice];
  let left = room;
  for (const request of wanted) {
    const bytes = entryOf(request).length + 1;
    if (bytes > left && slice.length > 0) {
      slice = [];
      slices.push(slice);
      left = room;
    }
    slice.push(request);
    left -= bytes;
  }
  return slices;
}
