/**
 * Writes XML exactly as ASP.NET does (docs/dev/servers.md 2.4): no indentation, `<empty />` with a blank, in text
 * only `&`, `<` and `>` escaped, TAB, CR and LF raw, and references for characters that XML 1.0 does not even allow.
 */
import type { Operation } from '../../src/operations.ts';
import { SOAP_NAMESPACES, type SoapVersion } from '../../src/remote/soap/contract.ts';
import type { FaultCode, ServiceFault } from '../refusals.ts';
import { MEDIA_TYPES } from './request.ts';

const DECLARATION = '<?xml version="1.0" encoding="utf-8"?>';
const TYPES = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"';

/** Written as a complement, so that it covers U+FFFE and U+FFFF too; surrogates are inside and stay raw. */
const ESCAPED = /[&<>]|[^\t\n\r -\ufffd]/g;

/** Text of an element. */
export function escapeText(text: string): string {
  return text.replace(ESCAPED, (character) => {
    if (character === '&') return '&amp;';
    if (character === '<') return '&lt;';
    if (character === '>') return '&gt;';
    return `&#x${character.charCodeAt(0).toString(16).toUpperCase()};`;
  });
}

/** An element around others; without others it is `<name />`. */
export function element(name: string, inner = ''): string {
  return inner === '' ? `<${name} />` : `<${name}>${inner}</${name}>`;
}

export function textElement(name: string, text: string): string {
  return element(name, escapeText(text));
}

export function nilElement(name: string): string {
  return `<${name} xsi:nil="true" />`;
}

/** The element of an answer around its result, or empty if that has no text at all. */
export async function* responseAround(
  operation: Operation,
  namespace: string,
  result: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<string> {
  const tag = `${operation}Response xmlns="${escapeText(namespace).replaceAll('"', '&quot;')}"`;
  let any = false;
  for await (const piece of result) {
    if (piece === '') continue;
    yield any ? piece : `<${tag}>${piece}`;
    any = true;
  }
  yield any ? `</${operation}Response>` : `<${tag} />`;
}

/** What stands before and after the content of Body. */
export function envelopeOf(version: SoapVersion): { before: string; after: string } {
  const before = `${DECLARATION}<soap:Envelope xmlns:soap="${SOAP_NAMESPACES[version]}" ${TYPES}><soap:Body>`;
  return { before, after: '</soap:Body></soap:Envelope>' };
}

/** The media type of answers. */
export function answerType(version: SoapVersion): string {
  return `${MEDIA_TYPES[version]}; charset=utf-8`;
}

const CODES_OF: Readonly<Record<SoapVersion, Readonly<Record<FaultCode, string>>>> = {
  '1.1': { client: 'Client', server: 'Server' },
  '1.2': { client: 'Sender', server: 'Receiver' },
};

/** The document of a fault. */
export function faultDocument(version: SoapVersion, fault: Pick<ServiceFault, 'code' | 'message'>): string {
  const { before, after } = envelopeOf(version);
  const code = `soap:${CODES_OF[version][fault.code]}`;
  const text = escapeText(fault.message);
  const inner =
    version === '1.1'
      ? `<faultcode>${code}</faultcode><faultstring>${text}</faultstring><detail />`
      : `<soap:Code><soap:Value>${code}</soap:Value></soap:Code>` +
        `<soap:Reason><soap:Text xml:lang="en">${text}</soap:Text></soap:Reason><soap:Detail />`;
  return `${before}<soap:Fault>${inner}</soap:Fault>${after}`;
}
