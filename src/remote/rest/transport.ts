/**
 * REST over HTTP: sends a call, and reads the response while it arrives. Addresses are never logged: with GET they
 * contain the session code.
 */
import { isIdempotent, type Operation } from '../../operations.ts';
import type { Lifted } from '../content/lifted.ts';
import { type Response, type ResponseFormat, readResponse } from '../content/read-response.ts';
import type { HttpClient } from '../http/http-client.ts';
import { AnswerScanner, type LiftRule } from './answer/scanner.ts';
import type { Address } from './contract.ts';
import { type Refusal, type RefusalReading, refusalOf, URL_KEYS, unexpected } from './refusals.ts';
import { type Json, JsonNumber, type JsonObject, writeJson } from './requests.ts';

const FORMAT: ResponseFormat = {
  name: 'JSON',
  hasType: (contentType) => /^(?:|(?:application|text)\/(?:[\w.-]+\+)?json)$/.test(contentType),
  maxRefusalBytes: 64 * 1024,
  mayBeEmpty: true,
  urlKeyOf: () => URL_KEYS,
  unexpected: (_, what) => unexpected(what),
};

export interface TransportOptions extends RefusalReading {
  readonly http: HttpClient;
  /** {base_url} with the path of the middleware, without a slash at its end. */
  readonly url: string;
}

interface Sending {
  readonly operation: Operation;
  readonly address: Address;
  readonly headers: Readonly<Record<string, string>>;
  readonly members: JsonObject;
  readonly rule: LiftRule | undefined;
  readonly lifted: Lifted | undefined;
  readonly maxBytes: number;
  readonly totalMs: number | undefined;
  readonly headersMs: number | undefined;
  readonly count: { bytes: number };
  readonly signal: AbortSignal;
}

export type Outcome =
  | Exclude<Response<Json | undefined>, { readonly kind: 'refusal' }>
  | ({ readonly kind: 'refusal' } & Refusal);

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /** @throws JobtailError what the HTTP client throws; redirected, unexpected-answer, malformed, answer-too-large */
  async send(sending: Sending): Promise<Outcome> {
    const { operation, signal, totalMs, headersMs, rule, lifted, maxBytes, count } = sending;
    const { http, secrets } = this.#options;
    const isRepeatable = isIdempotent(operation);
    const answer = await http.request({ ...this.#request(sending), totalMs, headersMs, signal, isRepeatable });
    const scanner = new AnswerScanner({ rule, lifted, maxBytes });
    const response = await readResponse(answer, { operation, format: FORMAT, scanner, lifted, count, secrets });
    if (response.kind !== 'refusal') return response;
    return { kind: 'refusal', ...refusalOf(operation, answer, response.head, this.#options) };
  }

  #request({ address: { verb, path }, headers, members }: Sending) {
    const url = `${this.#options.url}/${path}`;
    const shared = { 'user-agent': 'jobtail', accept: 'application/json', 'accept-language': 'en', ...headers };
    if (verb === 'GET') return { method: verb, url: `${url}?${queryOf(members)}`, headers: shared };
    const body = writeJson(members);
    return { method: verb, url, headers: { ...shared, 'content-type': 'application/json' }, body };
  }
}

function queryOf(members: JsonObject): string {
  const query = new URLSearchParams();
  for (const [name, value] of members.members) {
    query.set(name, value instanceof JsonNumber ? value.text : String(value));
  }
  return query.toString();
}
