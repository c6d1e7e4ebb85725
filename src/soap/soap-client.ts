/**
 * The `soap` package, for what it is good at: envelopes out of arguments, typed values out of small envelopes. Its HTTP
 * client is replaced; what goes wrong in it never reaches a caller, for its errors carry requests and session codes.
 */
import { type Client, createClientAsync, type IHttpClient } from 'soap';
import { parseLong } from '../job.ts';
import { type Operation, wsdlOf } from './contract.ts';
import { malformed } from './malformed.ts';

export interface SoapClientOptions {
  readonly namespace: string;
  readonly url: string;
  readonly soapVersion: '1.1' | '1.2';
}

export interface SoapCall {
  readonly operation: Operation;
  /** In the order of the contract; null is written as nil, an absent one is left out. Primitives and plain records. */
  readonly args: Readonly<Record<string, unknown>>;
  /** Sends an envelope and returns the one that came back. */
  readonly send: (xml: string, headers: Readonly<Record<string, string>>) => Promise<string>;
}

/** Either the content of the response element, or the fault as it was read. */
export type SoapResult = { readonly response: unknown } | { readonly fault: unknown };

type Method = (
  args: unknown,
  callback: (error: unknown, response: unknown) => void,
  options: { readonly call: PendingCall; readonly exchangeId: string },
) => void;

export class SoapClient {
  readonly #options: SoapClientOptions;
  #client: Promise<Client> | undefined;

  constructor(options: SoapClientOptions) {
    this.#options = options;
  }

  /** @throws JobtailError malformed; whatever `send` throws */
  async invoke({ operation, args, send }: SoapCall): Promise<SoapResult> {
    this.#client ??= createSoapClient(this.#options);
    const client = await this.#client;
    const call = new PendingCall(send);
    const method = client[operation] as Method;
    const { error, response } = await new Promise<{ error: unknown; response: unknown }>((resolve) => {
      method(args, (error, response) => resolve({ error, response }), { call, exchangeId: operation });
    });
    forgetLast(client);
    if (call.failure !== undefined) throw call.failure.error;
    if (error === null || error === undefined) return { response };
    const fault = faultIn(error);
    if (fault === undefined) throw malformed('its values are not those of the contract');
    return { fault };
  }
}

/** What belongs to one call; it travels through the package in the options of the call. */
class PendingCall {
  readonly send: SoapCall['send'];
  failure: { readonly error: unknown } | undefined;

  constructor(send: SoapCall['send']) {
    this.send = send;
  }
}

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
  ...[headers, options, client]: [Record<string, string>, { readonly call: PendingCall }, Client]
): void {
  const { call } = options;
  forgetLast(client);
  call.send(xml, headers).then(
    (rest) => callback(null, { status: 200, headers: {} }, rest),
    (error: unknown) => {
      call.failure = { error };
      callback(new Error('not sent'));
    },
  );
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
  const { root } = error as {
    readonly root?: { readonly Envelope?: { readonly Body?: { readonly Fault?: unknown } } };
  };
  return root?.Envelope?.Body?.Fault;
}
