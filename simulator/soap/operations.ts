/**
 * The five operations of FileTransferWs (docs/dev/soap.md 4.1). Each hands out the element inside Body in pieces; what it throws before
 * the first bytes went out becomes a fault.
 */
import { changedFiles, type ListedFile, pathOfListed } from '../cluster/job-files.ts';
import type { SandboxHabits } from '../habits.ts';
import { base64Of, bytesOf, openWhole } from '../operations/whole-file.ts';
import type { OperationCall, SandboxPlace } from '../place.ts';
import { ServiceFault } from '../refusals.ts';
import { element, responseAround, textElement } from './answer.ts';
import { downloadParts } from './download-parts.ts';
import type { SoapRequest } from './request.ts';

/** Runs the operation of a request. */
export function runOperation(request: SoapRequest, call: OperationCall, place: SandboxPlace): AsyncGenerator<string> {
  const respond = (result: AsyncGenerator<string>) => responseAround(request.operation, place.namespace, result);
  switch (request.operation) {
    case 'GetFileTransferMethod':
      return respond(getTransferMethod(call, place));
    case 'EndFileTransfer':
      return respond(endTransfer(request.method, call, place));
    case 'DownloadPartsOfJobFilesFromCluster':
      return respond(downloadParts(request.entries, call, place));
    case 'ListChangedFilesForJob':
      return respond(listChangedFiles(call, place));
    default:
      return respond(downloadFile(request.path ?? '', call, place));
  }
}

async function* getTransferMethod({ job }: OperationCall, { keys }: SandboxPlace) {
  const method = await keys.issue(job);
  const { credentials } = method;
  const inner =
    credentials === null
      ? ''
      : element(
          'credentials',
          textElement('username', credentials.username) +
            textElement('privateKey', credentials.privateKey) +
            textElement('publicKey', credentials.publicKey),
        );
  const place =
    textElement('serverHostname', method.serverHostname) + textElement('sharedBasepath', method.sharedBasepath);
  yield element('GetFileTransferMethodResult', place + textElement('protocol', method.protocol) + inner);
}

async function* endTransfer(
  { protocol, publicKey }: SoapRequest['method'],
  { job }: OperationCall,
  { keys }: SandboxPlace,
): AsyncGenerator<string> {
  if (protocol !== 'NetworkShare') await keys.end(job, publicKey);
  yield '';
}

async function* listChangedFiles({ job }: OperationCall, { cluster, habits }: SandboxPlace) {
  const files = await changedFiles(job, cluster.directory);
  if (files === null) return;
  const names = [...files.map((file) => listedName(file, habits)), ...Object.keys(habits.extraFiles)];
  const entries = names.map((listed) => textElement('string', listed)).join('');
  yield element('ListChangedFilesForJobResult', entries);
}

function listedName({ specificationId, path }: ListedFile, { listForm }: SandboxHabits): string {
  return listForm === 'bare' ? `${specificationId}/${path}` : `/${specificationId}/${path}`;
}

async function* downloadFile(listed: string, call: OperationCall, place: SandboxPlace) {
  const { habits } = place;
  const name = 'DownloadFileFromClusterResult';
  const extra = Object.hasOwn(habits.extraFiles, listed) ? habits.extraFiles[listed] : undefined;
  if (extra !== undefined) {
    yield textElement(name, Buffer.from(extra).toString('base64'));
    return;
  }
  const path = pathOfListed(call.job, listed);
  const file = path === undefined ? undefined : await openWhole({ path, listed }, call, place);
  if (file === undefined) throw new ServiceFault(`File ${listed} does not exist.`);
  try {
    if (file.size === 0) {
      yield element(name);
      return;
    }
    yield `<${name}>`;
    yield* base64Of(bytesOf(file));
    yield `</${name}>`;
  } finally {
    await file.handle.close();
  }
}
