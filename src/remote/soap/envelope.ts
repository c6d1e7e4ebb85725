/** Writes envelopes. */
import type { Grant, PartRequest, TransferMethod } from '../../agent/ports/server.ts';
import { JobtailError } from '../../errors.ts';
import type { Operation } from '../../operations.ts';
import { actionOf, FILE_TYPE_OF, SOAP_NAMESPACES, type SoapVersion } from './contract.ts';
import { NOT_XML } from './xml-text.ts';

export interface EnvelopeOptions {
  readonly namespace: string;
  readonly soapVersion: SoapVersion;
}

/** Elements in the order of the contract; null is nil, and a list is one element for each item. */
export interface RequestFields {
  readonly [name: string]: string | null | RequestFields | readonly RequestFields[];
}

export function writeEnvelope(
  operation: Operation,
  fields: RequestFields,
  { namespace, soapVersion }: EnvelopeOptions,
) {
  const body = `<${operation} xmlns="${namespace}">${elementsOf(fields)}</${operation}>`;
  return {
    xml: `<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="${SOAP_NAMESPACES[soapVersion]}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soap:Body>${body}</soap:Body></soap:Envelope>`,
    headers: headersOf(soapVersion, actionOf(namespace, operation)),
  };
}

function elementsOf(fields: RequestFields): string {
  const elements = Object.entries(fields).flatMap(([name, value]) =>
    [value].flat().map((one) => {
      if (one === null) return `<${name} xsi:nil="true"></${name}>`;
      return `<${name}>${typeof one === 'string' ? escaped(one) : elementsOf(one)}</${name}>`;
    }),
  );
  return elements.join('');
}

/** A parser would turn a raw CR into LF. */
const REFERENCES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '\r': '&#xD;' };

const escaped = (text: string) => text.replace(/[&<>\r]/g, (character) => REFERENCES[character] ?? '');

function headersOf(soapVersion: SoapVersion, action: string): Readonly<Record<string, string>> {
  return soapVersion === '1.2'
    ? { 'Content-Type': `application/soap+xml; charset=utf-8; action="${action}"`, accept: 'application/soap+xml' }
    : { 'Content-Type': 'text/xml; charset=utf-8', SOAPAction: `"${action}"`, accept: 'text/xml' };
}

/** The session is the last field (docs/dev/soap.md 4.1). */
export function inSession(fields: RequestFields, grant: Grant): RequestFields {
  return grant.kind === 'session'
    ? { ...fields, sessionCode: textArgument(grant.code, 'session code', 'config') }
    : fields;
}

/** ArrayOfTaskFileOffsetExt (docs/dev/soap.md 2.5). @throws JobtailError usage */
export function taskFileOffsets(wanted: readonly PartRequest[]): RequestFields {
  return {
    TaskFileOffsetExt: wanted.map(({ taskId, file, offset }) => ({
      submittedTaskInfoId: taskId,
      fileType: FILE_TYPE_OF[file],
      offset: offsetArgument(offset),
    })),
  };
}

function offsetArgument(offset: number): string {
  if (Number.isSafeInteger(offset)) return String(offset);
  throw new JobtailError('usage', `the offset ${offset} is no whole number`);
}

/** FileTransferMethodExt (docs/dev/soap.md 2.1): null members are omitted, unless the contract requires nil. */
export function transferMethodArgument(method: TransferMethod): RequestFields {
  const { serverHostname, sharedBasepath, protocol, credentials } = method;
  const { username = null, privateKey = null, publicKey = null } = credentials ?? {};
  const texts = (fields: Readonly<Record<string, string | null>>) =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, text]) => (text === null ? [] : [[name, textArgument(text, name)]])),
    );
  return {
    ...texts({ serverHostname, sharedBasepath }),
    protocol,
    ...(credentials === null ? {} : { credentials: texts({ username, privateKey, publicKey }) }),
  };
}

/** The text as it is. @throws JobtailError `code` for one that no request can carry */
export function textArgument(text: string, name: string, code: 'usage' | 'config' = 'usage'): string {
  if (!NOT_XML.test(text)) return text;
  throw new JobtailError(code, `the ${name} contains characters that are not allowed in a SOAP request`, {
    hint: code === 'usage' ? 'the service cannot send it' : 'check where the session code comes from: section auth',
  });
}
