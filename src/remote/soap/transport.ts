/**
 * SOAP over HTTP: sends an envelope, and reads the response while it arrives. Bulky texts go to their receivers; the
 * rest is returned.
 */
import { JobtailError } from '../../errors.ts';
import { isIdempotent, type Operation } from '../../operations.ts';
import type { Lifted } from '../content/lifted.ts';
import { scanAnswer } from '../content/scan-answer.ts';
import { type HttpAnswer, type HttpClient, readBeginning } from '../http/http-client.ts';
import { isWebPage, titleOf, webPage } from '../web-page.ts';
import { malformed } from '../wrong-answers.ts';
import { AnswerScanner, type Rest } from './answer/scanner.ts';
import type { Envelope } from './envelope.ts';
import { type Fault, type FaultReading, faultError, unexpected, urlKeyOf } from './faults.ts';

/** How much of an answer that is no success is looked at. */
const MAX_REFUSAL_BYTES = 256 * 1024;

export interface TransportOptions extends FaultReading {
  readonly http: HttpClient;
  readonly url: string;
  readonly namespace: string;
  /** Bytes of an answer allowed besides the lifted texts. */
  readonly maxSmallAnswerBytes: number;
}

/** One request. */
export interface Sending {
  readonly operation: Operation;
  readonly envelope: Envelope;
  readonly lifted: Lifted | undefined;
  /** Instead of the HTTP client's own limit. */
  readonly totalMs: number | undefined;
  readonly headersMs: number | undefined;
  /** Counts the bytes of the answer. */
  readonly count: { bytes: number };
  readonly signal: AbortSignal;
}

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /**
   * The envelope of the response without its lifted texts; undefined if no more of it was wanted.
   * @throws JobtailError whatever the HTTP client throws; redirected, unexpected-answer, malformed, answer-too-large;
   * that of a fault, or of a status that is no success
   */
  async send(sending: Sending): Promise<string | undefined> {
    const { http, url } = this.#options;
    const { operation, envelope, signal, totalMs, headersMs } = sending;
    const { xml: body, headers } = envelope;
    const isRepeatable = isIdempotent(operation);
    const limits = { totalMs, headersMs };
    const answer = await http.request({ method: 'POST', url, headers, body, signal, ...limits, isRepeatable });
    const { status } = answer;
    if (status === 200) {
      const rest = await this.#readSuccess(answer, sending);
      if (rest?.fault === undefined) return rest?.xml;
      throw faultError(operation, answer, { isFault: true, words: rest.fault }, this.#options);
    }
    if (status >= 400) throw faultError(operation, answer, await this.#readRefusal(answer, sending), this.#options);
    await answer.body[Symbol.asyncIterator]().return?.();
    if (status < 300) throw unexpected(operation, `its status is ${status} instead of 200`);
    throw new JobtailError('redirected', `the service answered ${operation} with status ${status}`, {
      hint: `redirects are not followed: put the final address into ${urlKeyOf(operation)}`,
    });
  }

  async #readSuccess(answer: HttpAnswer, sending: Sending): Promise<Rest | undefined> {
    if (!isXml(answer)) throw await this.#noEnvelope(answer, sending);
    if (!['', 'utf-8', 'utf8', 'us-ascii'].includes(answer.charset)) throw malformed('its encoding is not UTF-8');
    const { operation, count, lifted } = sending;
    const scanner = this.#scanner(operation, lifted);
    let head: Buffer | undefined;
    try {
      const onHead = (bytes: Buffer) => {
        head = bytes;
      };
      return (await scanAnswer(answer.body, scanner, { lifted, count, onHead }))?.rest;
    } catch (error) {
      const isDamage = error instanceof JobtailError && error.code === 'malformed';
      throw isDamage && head !== undefined && isWebPage(answer, head)
        ? webPage(head, urlKeyOf(operation), this.#options.secrets)
        : error;
    }
  }

  async #noEnvelope(answer: HttpAnswer, { operation, count }: Sending): Promise<JobtailError> {
    const head = await readBeginning(answer, MAX_REFUSAL_BYTES);
    count.bytes += head.length;
    if (head.length === 0) return unexpected(operation, 'it is empty');
    if (isWebPage(answer, head)) return webPage(head, urlKeyOf(operation), this.#options.secrets);
    return malformed(`it is ${this.#options.secrets.safeText(answer.contentType)} and no SOAP envelope`);
  }

  /** Probably a fault; otherwise the response decides. */
  async #readRefusal(answer: HttpAnswer, { operation, count }: Sending): Promise<Fault> {
    const head = await readBeginning(answer, MAX_REFUSAL_BYTES);
    count.bytes += head.length;
    const scanner = this.#scanner(operation, undefined);
    try {
      if (isXml(answer)) {
        scanner.push(head);
        const { fault } = scanner.finish();
        return { isFault: fault !== undefined, words: fault ?? '' };
      }
    } catch {
      // No envelope: the status alone describes the failure.
    }
    return { isFault: false, words: isWebPage(answer, head) ? titleOf(head) : isXml(answer) ? '' : head.toString() };
  }

  #scanner(operation: Operation, lifted: Lifted | undefined): AnswerScanner {
    const { namespace, secrets, maxSmallAnswerBytes } = this.#options;
    return new AnswerScanner({ operation, namespace, lifted, maxBytes: maxSmallAnswerBytes, secrets });
  }
}

/** Some servers send no content type; then the text itself must show that it is XML. */
function isXml({ contentType }: HttpAnswer): boolean {
  return /^(?:|text\/xml|application\/xml|application\/soap\+xml)$/.test(contentType);
}
