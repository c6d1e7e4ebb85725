/** Writes envelopes with the `soap` package. Checks arguments first, as it does not escape all texts. */
import type { WSDL } from 'soap/lib/wsdl/index.js';
import type { Grant, PartRequest, TransferMethod } from '../../agent/ports/server.ts';
import { JobtailError } from '../../errors.ts';
import type { Operation } from '../../operations.ts';
import { actionOf, type ContractOptions, FILE_TYPE_OF, SOAP_NAMESPACES, type SoapVersion, wsdlOf } from './contract.ts';
import { NOT_XML } from './xml-text.ts';

export interface Envelope {
  readonly xml: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface EnvelopesOptions extends ContractOptions {
  readonly soapVersion: SoapVersion;
}

export class Envelopes {
  readonly #options: EnvelopesOptions;
  #contract: Promise<WSDL> | undefined;

  constructor(options: EnvelopesOptions) {
    this.#options = options;
  }

  /** `args` in the order of the contract; null is nil, an absent one is omitted. */
  async write(operation: Operation, args: RequestFields): Promise<Envelope> {
    const { namespace, soapVersion } = this.#options;
    const contract = await this.#readContract();
    const body = contract.objectToDocumentXML(operation, args, 'tns', namespace, operation);
    return {
      xml: `<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="${SOAP_NAMESPACES[soapVersion]}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ${contract.xmlnsInEnvelope}><soap:Body>${body}</soap:Body></soap:Envelope>`,
      headers: headersOf(soapVersion, actionOf(namespace, operation)),
    };
  }

  #readContract(): Promise<WSDL> {
    this.#contract ??= readContract(wsdlOf(this.#options));
    return this.#contract;
  }
}

async function readContract(text: string): Promise<WSDL> {
  // Only the WSDL part, at the first call: loading the whole package blocks the event loop for 60 ms.
  const { WSDL } = await import('soap/lib/wsdl/index.js');
  return new Promise((resolve, reject) => {
    const contract = new WSDL(text, 'contract', {});
    Object.assign(contract.options, { attributesKey: 'attributes' });
    contract.onReady((error) => (error ? reject(error) : resolve(contract)));
  });
}

function headersOf(soapVersion: SoapVersion, action: string): Envelope['headers'] {
  return soapVersion === '1.2'
    ? { 'Content-Type': `application/soap+xml; charset=utf-8; action="${action}"`, accept: 'application/soap+xml' }
    : { 'Content-Type': 'text/xml; charset=utf-8', SOAPAction: `"${action}"`, accept: 'text/xml' };
}

/** In the order of the contract, which the `soap` package does not correct. */
export type RequestFields = Readonly<Record<string, unknown>>;

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

/** As text: a large number would be written with an exponent. */
function offsetArgument(offset: number): string {
  if (Number.isSafeInteger(offset)) return String(offset);
  throw new JobtailError('usage', `the offset ${offset} is no whole number`);
}

/** FileTransferMethodExt (docs/dev/soap.md 2.1): null members are omitted, unless the contract requires nil. */
export function transferMethodArgument(method: TransferMethod): RequestFields {
  const { serverHostname, sharedBasepath, protocol, credentials } = method;
  const texts = (fields: Readonly<Record<string, string | null>>) =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, text]) => (text === null ? [] : [[name, textArgument(text, name)]])),
    );
  return {
    ...texts({ serverHostname, sharedBasepath }),
    protocol,
    ...(credentials === null ? {} : { credentials: texts({ ...credentials }) }),
  };
}

/** The text as it is. @throws JobtailError `code` for one that no request can carry */
export function textArgument(text: string, name: string, code: 'usage' | 'config' = 'usage'): string {
  // The package does not escape a text that looks like a CDATA section.
  if (!NOT_XML.test(text) && !text.startsWith('<![CDATA[')) return text;
  throw new JobtailError(code, `the ${name} contains characters that are not allowed in a SOAP request`, {
    hint: code === 'usage' ? 'the service cannot send it' : 'check where the session code comes from: section auth',
  });
}
