/** An HTTP client that lets somebody read along: the habits of a server show only in what it really sends. */
import { type HttpAnswer, HttpClient, type HttpRequest } from '../../remote/http/http-client.ts';

/** What is kept of an answer. */
const MOST_BYTES = 64 * 1024;

export class OverheardClient extends HttpClient {
  /** The beginning of the last answer, once it was read. */
  lastAnswer = '';

  override async request(request: HttpRequest): Promise<HttpAnswer> {
    const answer = await super.request(request);
    this.lastAnswer = '';
    return { ...answer, body: this.#overhear(answer.body) };
  }

  async *#overhear(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const bytes of body) {
      if (this.lastAnswer.length < MOST_BYTES) this.lastAnswer += bytes.toString('latin1');
      yield bytes;
    }
  }
}
