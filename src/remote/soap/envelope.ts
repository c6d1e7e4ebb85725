/**
 * The `soap` package, for what it is good at: envelopes out of arguments, typed values out of small envelopes. Its HTTP
 * client is replaced; what goes wrong in it never reaches a caller, for its errors carry requests and session codes.
 */
import { type Client, createClientAsync, type IHttpClient } from 'soap';
import { parseLong } from '../../job.ts';
import { type Operation, wsdlOf } from './contract.ts';
import { malformed } from './malformed.ts';

export interface SoapClientOptions {
  readonly namespace: string;
  readonly url: string;
  readonly soapVersion: '1.1' | '1.2';
}

export interface SoapCall<Sent extends { readonly xml: string }> {
  readonly operation: Operation;
  /** In the order of the contract; null is written as nil, an absent one is left out. Primitives and plain records. */
  readonly args: Readonly<Record<string, unknown>>;
  /** Sends an envelope; what it returns holds the envelope that came back. */
  readonly send: (xml: string, headers: Readonly<Record<string, string>>) => Promise<Sent>;
}

export interface SoapAnswer<Sent> {
  /** What `send` returned. */
  readonly sent: Sent;
  /** The content of the response element; undefined or null if it is empty, or if the answer is a fault. */
  readonly response: unknown;
  /** The content of the fault; undefined or null if it is empty, or if the answer is none. */
  readonly fault: unknown;
}

export class SoapClient {
  readonly #options: SoapClientOptions;
  #client: Promise<Client> | undefined;

  constructor(options: SoapClientOptions) {
    this.#options = options;
  }

  /** @throws JobtailError malformed; whatever `send` throws */
  async invoke<Sent extends { readonly xml: string }>(call: SoapCall<Sent>): Promise<SoapAnswer<Sent>> {
    this.#client ??= createSoapClient(this.#options);
    const client = await this.#client;
    let sent: Sent | undefined;
    let failure: unknown;
    const send: Send = async (xml, headers) => {
      try {
        sent = await call.send(xml, headers);
        return sent.xml;
      } catch (error) {
        failure = error;
        throw new Error('not sent');
      }
    };
    const method = client[call.operation] as Method;
    const { error, response } = await new Promise<{ error: unknown; response?: unknown }>((resolve) => {
      method(call.args, (error, response) => resolve({ error, response }), { send, exchangeId: call.operation });
    });
    forgetLast(client);
    if (sent === undefined) throw failure;
    const fault = faultIn(error);
    if (error && fault === undefined) throw malformed('its values are not those of the contract');
    return { sent, response, fault };
  }
}

type Send = (xml: string, headers: Readonly<Record<string, string>>) => Promise<string>;

/** What belongs to one call travels through the package in the options of the call. */
interface CallOptions {
  readonly send: Send;
  readonly exchangeId: string;
}

type Method = (args: unknown, callback: (error: unknown, response: unknown) => void, options: CallOptions) => void;

async function createSoapClient({ namespace, url, soapVersion }: SoapClientOptions): Promise<Client> {
  return await createClientAsync(wsdlOf({ namespace, url }), {
    endpoint: url,
    // The cache shares the SOAP version of the newest client with all others.
    disableCache: true,
    forceSoap12Headers: soapVersion === '1.2',
    preserveWhitespace: true,
    handleNilAsNull: true,
    customDeserializer: { long: exactLong },
    httpClient: { request: sendCall as unknown as IHttpClient['request'] },
  });
}

/** Takes the place of the package's HTTP client. */
function sendCall(
  _url: string,
  xml: string,
  callback: (error: unknown, response?: unknown, body?: string) => void,
  ...[headers, options, client]: [Record<string, string>, CallOptions, Client]
): void {
  forgetLast(client);
  options.send(xml, headers).then((answer) => callback(null, { status: 200, headers: {} }, answer), callback);
}

/** The package keeps the last texts of a client for debugging; they hold the session code and may be large. */
function forgetLast(client: Client): void {
  for (const name of ['lastMessage', 'lastRequest', 'lastResponse', 'lastRequestHeaders', 'lastResponseHeaders']) {
    Reflect.deleteProperty(client, name);
  }
}

/** xs:long over its whole range, which a JavaScript number does not cover: as canonical decimal text. */
function exactLong(text: string): string {
  const long = parseLong(text);
  if (long === undefined) throw new Error('no whole number of 64 bits');
  return long;
}

function faultIn(error: unknown): unknown {
  const { root } = (error ?? {}) as {
    readonly root?: { readonly Envelope?: { readonly Body?: { readonly Fault?: unknown } } };
  };
  return root?.Envelope?.Body?.Fault;
}
