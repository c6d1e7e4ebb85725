/**
 * SOAP over HTTP: sends an envelope, and reads the response while it arrives. Bulky texts go to their receivers; the
 * rest is returned.
 */
import { isIdempotent, type Operation } from '../../operations.ts';
import type { Lifted } from '../content/lifted.ts';
import { isWebPage, type ResponseFormat, readResponse, titleOf } from '../content/read-response.ts';
import type { HttpAnswer, HttpClient } from '../http/http-client.ts';
import { AnswerScanner } from './answer/scanner.ts';
import type { Envelope } from './envelope.ts';
import { type Fault, type FaultReading, faultError, unexpected, urlKeyOf } from './faults.ts';

const FORMAT: ResponseFormat = {
  name: 'SOAP envelope',
  hasType: (contentType) => /^(?:|text\/xml|application\/xml|application\/soap\+xml)$/.test(contentType),
  maxRefusalBytes: 256 * 1024,
  mayBeEmpty: false,
  urlKeyOf,
  unexpected,
};

export interface TransportOptions extends FaultReading {
  readonly http: HttpClient;
  readonly url: string;
  readonly namespace: string;
  readonly maxSmallAnswerBytes: number;
}

export interface Sending {
  readonly operation: Operation;
  readonly envelope: Envelope;
  readonly lifted: Lifted | undefined;
  readonly totalMs: number | undefined;
  readonly headersMs: number | undefined;
  readonly count: { bytes: number };
  readonly signal: AbortSignal;
}

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /**
   * The response envelope without its lifted texts; undefined if the rest was not needed. @throws JobtailError what the
   * HTTP client throws; redirected, unexpected-answer, malformed, answer-too-large; that of a fault, or of a failed
   * status
   */
  async send(sending: Sending): Promise<string | undefined> {
    const { http, url, secrets } = this.#options;
    const { operation, envelope, lifted, count, signal, totalMs, headersMs } = sending;
    const { xml: body, headers } = envelope;
    const isRepeatable = isIdempotent(operation);
    const answer = await http.request({ method: 'POST', url, headers, body, signal, totalMs, headersMs, isRepeatable });
    const scanner = this.#scanner(operation, lifted);
    const response = await readResponse(answer, { operation, format: FORMAT, scanner, lifted, count, secrets });
    if (response.kind === 'refusal')
      throw faultError(operation, answer, this.#faultIn(answer, response.head, operation), this.#options);
    if (response.kind !== 'success') return undefined;
    const { rest } = response;
    if (rest.fault === undefined) return rest.xml;
    throw faultError(operation, answer, { isFault: true, words: rest.fault }, this.#options);
  }

  #faultIn(answer: HttpAnswer, head: Buffer, operation: Operation): Fault {
    const isXml = FORMAT.hasType(answer.contentType);
    try {
      if (isXml) {
        const scanner = this.#scanner(operation, undefined);
        scanner.push(head);
        const { fault } = scanner.finish();
        return { isFault: fault !== undefined, words: fault ?? '' };
      }
    } catch {
      // Without an envelope, only the status describes the failure.
    }
    return { isFault: false, words: isWebPage(answer, head) ? titleOf(head) : isXml ? '' : head.toString() };
  }

  #scanner(operation: Operation, lifted: Lifted | undefined): AnswerScanner {
    const { namespace, secrets, maxSmallAnswerBytes } = this.#options;
    return new AnswerScanner({ operation, namespace, lifted, maxBytes: maxSmallAnswerBytes, secrets });
  }
}
