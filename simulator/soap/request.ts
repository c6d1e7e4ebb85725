/**
 * Reads one SOAP call: media type, envelope of its version, action, and the request by the schema
 * (docs/dev/soap.md 4.1).
 */
import type { IncomingHttpHeaders } from 'node:http';
import { actionOf, SERVICES, SOAP_NAMESPACES, type SoapVersion } from '../../src/remote/soap/contract.ts';
import { readMediaType } from '../exchange.ts';
import { HttpRefusal, ServiceFault } from '../refusals.ts';
import { type RequestedService, readRequest, refused, type SoapRequest } from './request-schema.ts';
import { readXml, type XmlElement } from './xml-tree.ts';

export const MEDIA_TYPES = { '1.1': 'text/xml', '1.2': 'application/soap+xml' } as const;

/** The header lines about a call. */
interface SoapCallHead {
  readonly version: SoapVersion;
  /** The action without its quotes; undefined if there is none. */
  readonly action: string | undefined;
}

/** Reads the header lines. Throws 415 for a wrong media type, charset or coding. */
export function readHead(headers: IncomingHttpHeaders): SoapCallHead {
  const { type, parameters } = readMediaType(headers['content-type'] ?? '');
  const charset = parameters.get('charset') ?? 'utf-8';
  const coding = headers['content-encoding'] ?? 'identity';
  if (charset.toLowerCase() !== 'utf-8' || coding !== 'identity') throw new HttpRefusal(415);
  if (type === MEDIA_TYPES['1.2']) return { version: '1.2', action: parameters.get('action') };
  if (type !== MEDIA_TYPES['1.1']) throw new HttpRefusal(415);
  const line = headers['soapaction'];
  const action = typeof line === 'string' ? line.trim().replace(/^"(.*)"$/, '$1') : undefined;
  return { version: '1.1', action };
}

/** Reads the body of a call. Throws 400 for malformed XML and a client fault for all else that is wrong. */
export function readCall(body: Buffer, head: SoapCallHead, requested: RequestedService): SoapRequest {
  const root = readXml(body);
  const envelope = SOAP_NAMESPACES[head.version];
  if (root.local !== 'Envelope') throw refused(`expected element Envelope, found ${root.local}`);
  if (root.uri !== envelope) {
    const text = `expected an Envelope of ${envelope} (SOAP ${head.version}), found one of ${root.uri}`;
    throw new ServiceFault(text, 'version-mismatch');
  }
  const parts = [...root.children];
  if (parts[0]?.local === 'Header' && parts[0].uri === envelope) readHeader(parts.shift(), envelope);
  const [soapBody, more] = parts;
  if (soapBody?.local !== 'Body' || soapBody.uri !== envelope || more !== undefined) {
    throw refused(`expected exactly one element Body in Envelope, found ${parts.map((part) => part.local).join(', ')}`);
  }
  const [element, second] = soapBody.children;
  if (element === undefined || second !== undefined) {
    throw refused(`expected exactly one element in Body, found ${soapBody.children.length}`);
  }
  checkAction(head, element, requested);
  return readRequest(element, requested);
}

function readHeader(header: XmlElement | undefined, envelope: string): void {
  for (const block of header?.children ?? []) {
    const mustUnderstand = block.attributes.get(`{${envelope}}mustUnderstand`);
    if (mustUnderstand === '1' || mustUnderstand === 'true') {
      throw new ServiceFault(`SOAP header ${block.local} was not understood.`, 'must-understand');
    }
  }
}

function checkAction({ version, action }: SoapCallHead, element: XmlElement, requested: RequestedService): void {
  const { namespace, service } = requested;
  // SOAP 1.2 makes the action optional; ASP.NET then goes by the element.
  if (version === '1.2' && action === undefined) return;
  const known = SERVICES[service].some((operation) => actionOf(namespace, operation) === action);
  if (!known) {
    const name = version === '1.1' ? 'HTTP Header SOAPAction' : 'the action parameter';
    throw new ServiceFault(`Server did not recognize the value of ${name}: ${action ?? ''}.`, 'client');
  }
  if (action !== `${namespace}${element.local}`) {
    throw refused(`expected the operation of the action ${action}, found element ${element.local}`);
  }
}
