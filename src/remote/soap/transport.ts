/**
 * SOAP over HTTP: sends an envelope, and reads the answer while it arrives. Its bulky texts go to whoever wants them; what
 * remains of it comes back.
 */
import { JobtailError } from '../../errors.ts';
import type { Secrets } from '../../redact.ts';
import type { Lifted } from '../content/lifted.ts';
import { type HttpAnswer, type HttpClient, readBeginning } from '../http/http-client.ts';
import { malformed } from '../wrong-answers.ts';
import { AnswerScanner, type Rest, unexpected } from './answer/scanner.ts';
import type { Operation } from './contract.ts';
import type { Envelope } from './envelope.ts';
import type { RepeatedAnswer } from './repeated-answer.ts';

/** How much of an answer that is no success is looked at. */
const MAX_REFUSAL_BYTES = 256 * 1024;
const MAX_TITLE_LENGTH = 100;

export interface TransportOptions {
  readonly http: HttpClient;
  readonly url: string;
  readonly namespace: string;
  /** Nothing of them goes into a message. */
  readonly secrets: Secrets;
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
  /** Counts the bytes of the answer. */
  readonly count: { bytes: number };
  /** An answer that is known is not looked into. */
  readonly repeated: RepeatedAnswer | undefined;
  readonly signal: AbortSignal;
}

/** What came back. With a status other than 200, or a fault, it is no success. */
export interface Received {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  /** The envelope without its lifted texts; undefined if there is none, or not more of it is wanted. */
  readonly rest?: Rest | undefined;
  /** What an answer without an envelope says. */
  readonly words?: string;
}

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /** @throws JobtailError whatever the HTTP client throws; redirected, unexpected-answer, malformed, answer-too-large */
  async send(sending: Sending): Promise<Received> {
    const { http, url } = this.#options;
    const { operation, envelope, signal, totalMs } = sending;
    const { xml: body, headers } = envelope;
    const answer = await http.request({ method: 'POST', url, headers, body, signal, totalMs });
    const { status, retryAfterMs } = answer;
    if (status === 200) return { status, retryAfterMs, rest: await this.#readSuccess(answer, sending) };
    if (status >= 400) return { status, retryAfterMs, ...(await this.#readRefusal(answer, sending)) };
    await answer.body[Symbol.asyncIterator]().return?.();
    if (status < 300) throw unexpected(`its status is ${status} instead of 200`);
    throw new JobtailError('redirected', `the service answered ${operation} with status ${status}`, {
      hint: 'redirects are not followed: put the final address into service.fileTransferUrl',
    });
  }

  async #readSuccess(answer: HttpAnswer, sending: Sending): Promise<Rest | undefined> {
    if (!isXml(answer)) throw await this.#noEnvelope(answer, sending);
    if (!['', 'utf-8', 'utf8', 'us-ascii'].includes(answer.charset)) throw malformed('its encoding is not UTF-8');
    const { count, lifted, repeated } = sending;
    const onBytes = (bytes: number) => {
      count.bytes += bytes;
    };
    const scanner = this.#scanner(sending.operation, lifted);
    let head: Buffer | undefined;
    try {
      for await (const chunk of repeated?.unlessKnown(answer.body, onBytes) ?? answer.body) {
        head ??= chunk;
        if (repeated === undefined) onBytes(chunk.length);
        scanner.push(chunk);
        await lifted?.flush();
        if (lifted?.hasEnough) return undefined;
      }
      return repeated?.isKnown ? undefined : scanner.finish();
    } catch (error) {
      const isDamage = error instanceof JobtailError && error.code === 'malformed';
      throw isDamage && head !== undefined && isWebPage(answer, head) ? this.#webPage(head) : error;
    }
  }

  async #noEnvelope(answer: HttpAnswer, { count }: Sending): Promise<JobtailError> {
    const head = await readBeginning(answer, MAX_REFUSAL_BYTES);
    count.bytes += head.length;
    if (head.length === 0) return unexpected('it is empty');
    if (isWebPage(answer, head)) return this.#webPage(head);
    return malformed(`it is ${this.#options.secrets.safeText(answer.contentType)} and no SOAP envelope`);
  }

  /** An envelope with a status other than 200, most likely a fault, or the words of something else. */
  async #readRefusal(answer: HttpAnswer, { operation, count }: Sending): Promise<Pick<Received, 'rest' | 'words'>> {
    const head = await readBeginning(answer, MAX_REFUSAL_BYTES);
    count.bytes += head.length;
    if (!isXml(answer)) return { words: isWebPage(answer, head) ? titleOf(head) : head.toString() };
    try {
      const scanner = this.#scanner(operation, undefined);
      scanner.push(head);
      return { rest: scanner.finish() };
    } catch {
      // No envelope, so the status alone says what happened.
      return { words: isWebPage(answer, head) ? titleOf(head) : '' };
    }
  }

  #scanner(operation: Operation, lifted: Lifted | undefined): AnswerScanner {
    const { namespace, secrets, maxSmallAnswerBytes } = this.#options;
    return new AnswerScanner({ operation, namespace, lifted, maxBytes: maxSmallAnswerBytes, secrets });
  }

  #webPage(head: Buffer): JobtailError {
    const title = this.#options.secrets.safeText(titleOf(head), MAX_TITLE_LENGTH);
    return new JobtailError('malformed', `the answer is a web page${title === '' ? '' : ` ("${title}")`}`, {
      hint: 'a proxy or sign-in page stands in the way, or service.fileTransferUrl is the address of something else',
    });
  }
}

/** Some servers send no content type; then the text itself must show that it is XML. */
function isXml({ contentType }: HttpAnswer): boolean {
  return /^(?:|text\/xml|application\/xml|application\/soap\+xml)$/.test(contentType);
}

function isWebPage({ contentType }: HttpAnswer, head: Buffer): boolean {
  if (contentType === 'text/html' || contentType === 'application/xhtml+xml') return true;
  return /^\s*<(?:!doctype\s+html|html)\b/i.test(head.toString('latin1', 0, 1024));
}

function titleOf(head: Buffer): string {
  return /<title[^<>]{0,200}>([^<]{0,1000})/i.exec(head.toString('utf8', 0, 64 * 1024))?.[1]?.trim() ?? '';
}
