/**
 * Reads one SOAP call: media type, envelope of its version, and the request (docs/dev/soap.md 2, 4.1 and 10.1). It trusts the
 * caller beyond that.
 */
import type { IncomingHttpHeaders } from 'node:http';
import sax from 'sax';
import type { Operation } from '../../src/operations.ts';
import {
  type FileType,
  SERVICES,
  type ServiceName,
  SOAP_NAMESPACES,
  type SoapVersion,
} from '../../src/remote/soap/contract.ts';
import { readMediaType } from '../exchange.ts';
import { HttpRefusal, ServiceFault } from '../refusals.ts';

export const MEDIA_TYPES = { '1.1': 'text/xml', '1.2': 'application/soap+xml' } as const;

/** Longs are decimal text; what is absent has no value, and what is nil is empty. */
export interface SoapRequest {
  readonly operation: Operation;
  readonly jobId: string | undefined;
  readonly sessionCode: string | undefined;
  /** DownloadFileFromCluster: the name as sent. */
  readonly path: string | undefined;
  /** EndFileTransfer. */
  readonly method: { readonly protocol: string | undefined; readonly publicKey: string | undefined };
  /** DownloadPartsOfJobFilesFromCluster; none for another one. */
  readonly entries: readonly TaskFileOffset[];
}

export interface TaskFileOffset {
  readonly submittedTaskInfoId: string | null;
  readonly fileType: FileType | null;
  readonly offset: string | null;
}

interface Element {
  readonly name: string;
  readonly uri: string;
  readonly children: Element[];
  text: string;
}

/** The version by the media type. Throws 415 for another one, and for another charset or coding. */
export function versionOf(headers: IncomingHttpHeaders): SoapVersion {
  const { type, parameters } = readMediaType(headers['content-type'] ?? '');
  const charset = parameters.get('charset') ?? 'utf-8';
  const version = (['1.1', '1.2'] as const).find((known) => MEDIA_TYPES[known] === type);
  const isPlain = charset.toLowerCase() === 'utf-8' && headers['content-encoding'] === undefined;
  if (version === undefined || !isPlain) throw new HttpRefusal(415);
  return version;
}

/** Throws 400 for malformed XML, and a client fault for what is no operation of the service. */
export function readCall(
  body: Buffer,
  version: SoapVersion,
  { namespace, service }: { readonly namespace: string; readonly service: ServiceName },
): SoapRequest {
  const envelope = child(readXml(body), 'Envelope');
  const called = child(envelope, 'Body')?.children[0];
  const operation = SERVICES[service].find((name: Operation) => name === called?.name);
  if (envelope?.uri !== SOAP_NAMESPACES[version] || operation === undefined || called?.uri !== namespace)
    throw new ServiceFault(`Server was unable to read request. ---> no operation of ${namespace}`, 'client');
  const method = child(called, 'usedTransferMethod');
  const entries = child(called, 'taskFileOffsets')?.children ?? [];
  return {
    operation,
    jobId: textIn(called, 'submittedJobInfoId'),
    sessionCode: textIn(called, 'sessionCode'),
    path: textIn(called, 'relativeFilePath'),
    method: { protocol: textIn(method, 'protocol'), publicKey: textIn(child(method, 'credentials'), 'publicKey') },
    entries: entries.map((entry) => ({
      submittedTaskInfoId: textIn(entry, 'submittedTaskInfoId') ?? null,
      fileType: (textIn(entry, 'fileType') as FileType | undefined) ?? null,
      offset: textIn(entry, 'offset') ?? null,
    })),
  };
}

const child = (element: Element | undefined, name: string) => element?.children.find((each) => each.name === name);
const textIn = (element: Element | undefined, name: string) => child(element, name)?.text;

/** The document as a tree: an element around its root. */
function readXml(bytes: Buffer): Element {
  const document: Element = { name: '', uri: '', children: [], text: '' };
  const open = [document];
  const parser = sax.parser(true, { xmlns: true, position: false });
  parser.onerror = () => {
    throw new HttpRefusal(400);
  };
  parser.onopentag = (tag) => {
    const { local, uri } = tag as sax.QualifiedTag;
    const element = { name: local, uri, children: [], text: '' };
    open.at(-1)?.children.push(element);
    open.push(element);
  };
  parser.onclosetag = () => void open.pop();
  parser.ontext = (piece) => {
    const element = open.at(-1);
    if (element !== undefined) element.text += piece;
  };
  parser.write(bytes.toString().replace(/\r\n?/g, '\n')).close();
  return document;
}
