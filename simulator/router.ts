/** Routes an HTTP request: to the control interface, a service of SOAP, a sign-in, REST. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { finished } from 'node:stream/promises';
import { JobtailError } from '../src/errors.ts';
import { DEFAULT_PATH } from '../src/remote/rest/contract.ts';
import { handleControl } from './control.ts';
import { type Exchange, sendText } from './exchange.ts';
import type { SandboxPlace } from './place.ts';
import { HttpRefusal } from './refusals.ts';
import { handleRest } from './rest/endpoint.ts';
import { handleSignIn, signInOf } from './signin/sign-in.ts';
import { handleSoap, serviceAt } from './soap/endpoint.ts';

const CONTROL_PATH = '/sandbox/';

export class Router {
  readonly #place: SandboxPlace;

  constructor(place: SandboxPlace) {
    this.#place = place;
  }

  /** Never rejects: what is thrown becomes a status, or the end of the connection. */
  async serve(request: IncomingMessage, response: ServerResponse, baseUrl: string): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    response.on('error', () => gone.abort());
    try {
      const exchange = { request, response, signal: gone.signal };
      await this.#route(exchange, new URL(request.url ?? '/', baseUrl));
    } catch (thrown) {
      if (response.headersSent || gone.signal.aborted) response.destroy();
      else await this.#refuse(request, response, thrown);
    }
  }

  async #route(exchange: Exchange, url: URL): Promise<void> {
    const { pathname } = url;
    if (pathname.startsWith(CONTROL_PATH)) {
      await handleControl(exchange, pathname.slice(CONTROL_PATH.length), this.#place);
      return;
    }
    const service = serviceAt(pathname, this.#place.habits);
    const signIn = signInOf(pathname);
    if (service !== undefined) await handleSoap(exchange, { service, url }, this.#place);
    else if (signIn !== undefined) await handleSignIn(exchange, signIn, this.#place);
    else if (pathname.startsWith(`${DEFAULT_PATH}/`)) await handleRest(exchange, url, this.#place);
    else throw new HttpRefusal(404);
  }

  async #refuse(request: IncomingMessage, response: ServerResponse, thrown: unknown): Promise<void> {
    const { status, headers, text } = thrown instanceof HttpRefusal ? thrown : asRefusal(thrown);
    // The rest of a request that was not read goes away first, so that the client sees the status and no reset.
    await finished(request.resume()).catch(() => undefined);
    const type = text === '' ? {} : { 'content-type': 'text/plain; charset=utf-8' };
    sendText(response, { status, headers: { ...type, ...headers }, body: text });
  }
}

/** What a caller did wrong is a 400; anything else is a defect of the sandbox. */
function asRefusal(thrown: unknown): HttpRefusal {
  return new HttpRefusal(thrown instanceof JobtailError ? 400 : 500, thrown instanceof Error ? thrown.message : '');
}
