/**
 * REST over HTTP: sends the arguments of a call, and reads the response while it arrives. An address is never logged:
 * with GET, it contains the session code.
 */
import { JobtailError } from '../../errors.ts';
import { isIdempotent, type Operation } from '../../operations.ts';
import type { Lifted } from '../content/lifted.ts';
import { scanAnswer } from '../content/scan-answer.ts';
import { type HttpAnswer, type HttpClient, readBeginning } from '../http/http-client.ts';
import { isWebPage, webPage } from '../web-page.ts';
import { malformed } from '../wrong-answers.ts';
import { AnswerScanner, type LiftRule } from './answer/scanner.ts';
import type { Address } from './contract.ts';
import { type Json, JsonNumber, type JsonObject, writeJson } from './json.ts';
import { type Refusal, type RefusalReading, refusalOf, URL_KEYS, unexpected } from './refusals.ts';

/** How much of an answer that is no success is looked at. */
const MAX_REFUSAL_BYTES = 64 * 1024;

export interface TransportOptions extends RefusalReading {
  readonly http: HttpClient;
  /** {base_url} with the path of the middleware, without a slash at its end. */
  readonly url: string;
}

/** One request. */
interface Sending {
  readonly operation: Operation;
  readonly address: Address;
  readonly headers: Readonly<Record<string, string>>;
  readonly members: JsonObject;
  readonly rule: LiftRule | undefined;
  readonly lifted: Lifted | undefined;
  /** Bytes of the answer allowed besides lifted texts. */
  readonly maxBytes: number;
  /** Instead of the HTTP client's own limit. */
  readonly totalMs: number | undefined;
  readonly headersMs: number | undefined;
  /** Counts the bytes of the answer. */
  readonly count: { bytes: number };
  readonly signal: AbortSignal;
}

/** `nothing`: status 204. `enough`: no more of it was wanted. */
export type Outcome =
  | { readonly kind: 'answer'; readonly rest: Json | undefined }
  | { readonly kind: 'nothing' | 'enough' }
  | ({ readonly kind: 'refusal' } & Refusal);

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /**
   * @throws JobtailError whatever the HTTP client throws; redirected, unexpected-answer, malformed, answer-too-large
   */
  async send(sending: Sending): Promise<Outcome> {
    const { operation, signal, totalMs, headersMs } = sending;
    const isRepeatable = isIdempotent(operation);
    const limits = { totalMs, headersMs };
    const answer = await this.#options.http.request({ ...this.#request(sending), ...limits, signal, isRepeatable });
    const { status } = answer;
    if (status === 200) return await this.#readSuccess(answer, sending);
    if (status >= 400) {
      const head = await readBeginning(answer, MAX_REFUSAL_BYTES);
      sending.count.bytes += head.length;
      return { kind: 'refusal', ...refusalOf(operation, answer, head, this.#options) };
    }
    await answer.body[Symbol.asyncIterator]().return?.();
    if (status === 204) return { kind: 'nothing' };
    if (status < 300) throw unexpected(`its status is ${status} instead of 200`);
    throw new JobtailError('redirected', `the service answered ${operation} with status ${status}`, {
      hint: `redirects are not followed: put the final address into ${URL_KEYS}`,
    });
  }

  #request({ address: { verb, path }, headers, members }: Sending) {
    const url = `${this.#options.url}/${path}`;
    const shared = { 'user-agent': 'jobtail', accept: 'application/json', 'accept-language': 'en', ...headers };
    if (verb === 'GET') return { method: verb, url: `${url}?${queryOf(members)}`, headers: shared };
    const body = writeJson(members);
    return { method: verb, url, headers: { ...shared, 'content-type': 'application/json' }, body };
  }

  async #readSuccess(answer: HttpAnswer, { rule, lifted, maxBytes, count }: Sending): Promise<Outcome> {
    if (!isJson(answer)) throw await this.#noJson(answer, count);
    if (!['', 'utf-8', 'utf8', 'us-ascii'].includes(answer.charset)) throw malformed('its encoding is not UTF-8');
    const scanner = new AnswerScanner({ rule, lifted, maxBytes });
    const heads: Buffer[] = [];
    try {
      const onHead = (head: Buffer) => void heads.push(head);
      const scanned = await scanAnswer(answer.body, scanner, { lifted, count, onHead });
      if (scanned !== undefined) return { kind: 'answer', rest: scanned.rest };
      return { kind: 'enough' };
    } catch (error) {
      const [head = Buffer.alloc(0)] = heads;
      const isDamage = error instanceof JobtailError && error.code === 'malformed';
      if (isDamage && isWebPage(answer, head)) throw webPage(head, URL_KEYS, this.#options.secrets);
      throw isDamage && count.bytes === 0 ? unexpected('it is empty') : error;
    }
  }

  async #noJson(answer: HttpAnswer, count: { bytes: number }): Promise<JobtailError> {
    const { secrets } = this.#options;
    const head = await readBeginning(answer, MAX_REFUSAL_BYTES);
    count.bytes += head.length;
    if (head.length === 0) return unexpected('it is empty');
    if (isWebPage(answer, head)) return webPage(head, URL_KEYS, secrets);
    return malformed(`it is ${secrets.safeText(answer.contentType)} and no JSON`);
  }
}

/** Some servers send no content type; then the text itself must show that it is JSON. */
function isJson({ contentType }: HttpAnswer): boolean {
  return /^(?:|(?:application|text)\/(?:[\w.-]+\+)?json)$/.test(contentType);
}

function queryOf(members: JsonObject): string {
  const query = new URLSearchParams();
  for (const [name, value] of members.members) {
    query.set(name, value instanceof JsonNumber ? value.text : String(value));
  }
  return query.toString();
}
