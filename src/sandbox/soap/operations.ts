/**
 * The five operations of FileTransferWs (docs/interface.md 4.1). Each hands out the element inside Body in pieces; what it throws before
 * the first bytes went out becomes a fault.
 */
import type { FileTransferOperation } from '../../operations.ts';
import {
  changedFiles,
  type ListedFile,
  openWithin,
  pathOfListed,
  readRange,
  taskAt,
  visibleSize,
} from '../cluster/job-files.ts';
import type { TransferKeys } from '../cluster/transfer-keys.ts';
import { staleBytes } from '../faults.ts';
import type { SandboxHabits } from '../habits.ts';
import type { OperationCall, SandboxPlace } from '../place.ts';
import { ServiceFault } from '../refusals.ts';
import { element, memberElement, nilElement, responseAround, textElement } from './answer.ts';
import { downloadParts } from './download-parts.ts';
import type { RequestOf } from './request-schema.ts';

/** Runs the operation of a request. */
export function runOperation(
  request: RequestOf<FileTransferOperation>,
  call: OperationCall,
  place: SandboxPlace,
): AsyncGenerator<string> {
  const respond = (result: AsyncGenerator<string>) => responseAround(request.operation, place.namespace, result);
  switch (request.operation) {
    case 'GetFileTransferMethod':
      return respond(getTransferMethod(call, place));
    case 'EndFileTransfer':
      return respond(endTransfer(request.body.usedTransferMethod, call, place));
    case 'DownloadPartsOfJobFilesFromCluster':
      return respond(downloadParts(request.body.taskFileOffsets?.TaskFileOffsetExt ?? [], call, place));
    case 'ListChangedFilesForJob':
      return respond(listChangedFiles(call, place));
    case 'DownloadFileFromCluster':
      return respond(downloadFile(request.body.relativeFilePath ?? '', call, place));
  }
}

async function* getTransferMethod({ job }: OperationCall, { keys, habits }: SandboxPlace) {
  const method = await keys.issue(job);
  const name = 'GetFileTransferMethodResult';
  if (method === null) {
    yield* absent(name, habits);
    return;
  }
  const { credentials } = method;
  const inner =
    credentials === null
      ? memberElement('credentials', null, habits.nullMembers)
      : element(
          'credentials',
          textElement('username', credentials.username) +
            textElement('privateKey', credentials.privateKey) +
            textElement('publicKey', credentials.publicKey),
        );
  const place =
    textElement('serverHostname', method.serverHostname) + textElement('sharedBasepath', method.sharedBasepath);
  yield element(name, place + textElement('protocol', method.protocol) + inner);
}

async function* endTransfer(
  method: Parameters<TransferKeys['end']>[1],
  { job }: OperationCall,
  { keys }: SandboxPlace,
): AsyncGenerator<string> {
  await keys.end(job, method);
  yield '';
}

async function* listChangedFiles({ job }: OperationCall, { cluster, habits }: SandboxPlace) {
  const files = await changedFiles(job, cluster.directory);
  const name = 'ListChangedFilesForJobResult';
  if (files === null) {
    yield* absent(name, habits);
    return;
  }
  const names = [...files.map((file) => listedName(file, habits)), ...Object.keys(habits.extraFiles)];
  const entries = names.map((listed) => textElement('string', listed)).join('');
  yield element(name, (habits.nilEntries ? nilElement('string') : '') + entries);
}

function listedName({ specificationId, path }: ListedFile, { listForm }: SandboxHabits): string {
  if (listForm === 'triple-slash') return `${specificationId}///${path}`;
  return listForm === 'bare' ? `${specificationId}/${path}` : `/${specificationId}/${path}`;
}

async function* downloadFile(listed: string, { job, rules }: OperationCall, place: SandboxPlace) {
  const { cluster, habits, flushing } = place;
  const name = 'DownloadFileFromClusterResult';
  const extra = Object.hasOwn(habits.extraFiles, listed) ? habits.extraFiles[listed] : undefined;
  if (extra !== undefined) {
    yield textElement(name, Buffer.from(extra).toString('base64'));
    return;
  }
  const path = habits.oneLeadingSlash && !/^\/(?!\/)/.test(listed) ? undefined : pathOfListed(job, listed);
  const file = path === undefined ? undefined : await openWithin(cluster.directory, path);
  if (path === undefined || file === undefined) {
    if (habits.missingFile === 'fault') throw new ServiceFault(`File ${listed} does not exist.`);
    yield* absent(name, habits);
    return;
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new ServiceFault(`${listed} is no file.`);
    const flushed = flushing.flushedSize(taskAt(job, path), path, stats.size);
    const end = visibleSize(flushed, staleBytes(rules, { file: listed }));
    if (end === 0) {
      yield element(name);
      return;
    }
    yield `<${name}>`;
    yield* base64Of(readRange(file, { start: 0, end }));
    yield `</${name}>`;
  } finally {
    await file.close();
  }
}

/** Base64 without line breaks; up to two bytes wait for the next read. */
async function* base64Of(reads: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const read of reads) {
    const bytes = rest.length === 0 ? read : Buffer.concat([rest, read]);
    const whole = bytes.length - (bytes.length % 3);
    yield bytes.toString('base64', 0, whole);
    rest = Buffer.from(bytes.subarray(whole));
  }
  yield rest.toString('base64');
}

/** A result without a value. */
function* absent(name: string, { nullMembers }: SandboxHabits) {
  if (nullMembers) yield nilElement(name);
}
