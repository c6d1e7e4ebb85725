/**
 * Envelopes, by the `soap` package, which knows the contract: out of arguments, and from the small rest of an answer
 * into typed values. It sends nothing, and its errors reach nobody, for they carry what it read.
 */
import { WSDL } from 'soap';
import { parseLong } from '../../job.ts';
import { malformed } from '../wrong-answers.ts';
import type { Fields } from './arguments.ts';
import { actionOf, type Operation, SOAP_NAMESPACES, type SoapVersion, wsdlOf } from './contract.ts';

/** A request as it is sent. */
export interface Envelope {
  readonly xml: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What an answer holds; one of them at most. */
export interface EnvelopeContent {
  /** The content of the response element; undefined or null if it is empty. */
  readonly response?: unknown;
  /** The content of the fault. */
  readonly fault?: unknown;
}

export interface EnvelopesOptions {
  readonly namespace: string;
  readonly url: string;
  readonly soapVersion: SoapVersion;
}

export class Envelopes {
  readonly #options: EnvelopesOptions;
  #contract: Promise<WSDL> | undefined;

  constructor(options: EnvelopesOptions) {
    this.#options = options;
  }

  /** `args` in the order of the contract; null is written as nil, an absent one is left out. */
  async write(operation: Operation, args: Fields): Promise<Envelope> {
    const { namespace, soapVersion } = this.#options;
    const contract = await this.#read();
    const body = contract.objectToDocumentXML(operation, args, 'tns', namespace, operation);
    return {
      xml: `<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="${SOAP_NAMESPACES[soapVersion]}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ${contract.xmlnsInEnvelope}><soap:Body>${body}</soap:Body></soap:Envelope>`,
      headers: headersOf(soapVersion, actionOf(namespace, operation)),
    };
  }

  /** `xml` is what the scanner left of an answer. @throws JobtailError malformed */
  async read(operation: Operation, xml: string): Promise<EnvelopeContent> {
    const contract = await this.#read();
    try {
      return { response: contract.xmlToObject(xml).Body[`${operation}Response`] };
    } catch (error) {
      const fault = faultIn(error);
      if (fault === undefined) throw malformed('its values are not those of the contract');
      return { fault };
    }
  }

  #read(): Promise<WSDL> {
    this.#contract ??= readContract(wsdlOf(this.#options));
    return this.#contract;
  }
}

function readContract(text: string): Promise<WSDL> {
  return new Promise((resolve, reject) => {
    const contract = new WSDL(text, 'contract', { handleNilAsNull: true, customDeserializer: { long: exactLong } });
    Object.assign(contract.options, { preserveWhitespace: true, attributesKey: 'attributes' });
    contract.onReady((error) => (error ? reject(error) : resolve(contract)));
  });
}

function headersOf(soapVersion: SoapVersion, action: string): Envelope['headers'] {
  return soapVersion === '1.2'
    ? { 'Content-Type': `application/soap+xml; charset=utf-8; action="${action}"`, accept: 'application/soap+xml' }
    : { 'Content-Type': 'text/xml; charset=utf-8', SOAPAction: `"${action}"`, accept: 'text/xml' };
}

/** xs:long over its whole range, which a JavaScript number does not cover: as canonical decimal text. */
function exactLong(text: string): string {
  const long = parseLong(text);
  if (long === undefined) throw new Error('no whole number of 64 bits');
  return long;
}

/** The package throws a fault that it reads. */
function faultIn(error: unknown): unknown {
  const { root } = (error ?? {}) as {
    readonly root?: { readonly Envelope?: { readonly Body?: { readonly Fault?: unknown } } };
  };
  return root?.Envelope?.Body?.Fault;
}
