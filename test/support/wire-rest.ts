/** A client and a small server that speak REST, for the tests of the wire, with what they did written down. */

import type { IncomingMessage } from 'node:http';
import { HttpClient, type HttpLimits } from '../../src/remote/http/http-client.ts';
import { RestCapabilities } from '../../src/remote/rest/capabilities.ts';
import { RestJobService, RestRemote, type RestRemoteOptions } from '../../src/remote/rest/client.ts';
import type { CallEvent } from '../../src/remote/session-calls.ts';
import { GivenSession, remoteParts, TEST_LIMITS } from './wire-remote.ts';
import { bodyOf, startHttpServer, type WireServer } from './wire-server.ts';

export interface TestRest {
  readonly remote: RestRemote;
  readonly jobs: RestJobService;
  readonly session: GivenSession;
  readonly events: CallEvent[];
  /** What is known of the server. */
  readonly kept: Map<string, string>;
  /** What was reported of changes. */
  readonly changes: string[];
  close(): Promise<void>;
}

export interface TestRestOptions extends Partial<RestRemoteOptions> {
  readonly limits?: HttpLimits;
  readonly session?: GivenSession;
  readonly kept?: Map<string, string>;
  readonly now?: () => number;
}

export function createRest(url: string, options: TestRestOptions = {}): TestRest {
  const {
    limits = TEST_LIMITS,
    session = new GivenSession(),
    kept = new Map<string, string>(),
    now = () => 0,
    ...rest
  } = options;
  const http = new HttpClient({ limits });
  const events: CallEvent[] = [];
  const changes: string[] = [];
  const capabilities = new RestCapabilities({ kept, onChange: (what) => changes.push(what), now });
  const all: RestRemoteOptions = {
    ...{ ...remoteParts(events), url: `${new URL(url).origin}/heappe`, http, session, capabilities },
    ...rest,
  };
  const remote = new RestRemote(all);
  return { remote, jobs: new RestJobService(all), session, events, kept, changes, close: () => http.close() };
}

export interface Asked {
  /** `POST FileTransfer/ListChangedFilesForJob` */
  readonly what: string;
  /** Of GET as well: what the query says. */
  readonly members: Readonly<Record<string, unknown>>;
  /** Of the body. */
  readonly bytes: number;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
}

export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  /** In the place of a body: a page of plain text. */
  readonly page?: string;
}

interface RestServer extends WireServer {
  readonly asked: Asked[];
}

/** None of a body that is not JSON. */
function membersOf(body: string, url: URL): Record<string, unknown> {
  if (body === '') return Object.fromEntries(url.searchParams);
  return body.startsWith('{') ? (JSON.parse(body) as Record<string, unknown>) : {};
}

export async function startRestServer(answer: (asked: Asked) => Answer): Promise<RestServer> {
  const asked: Asked[] = [];
  const server = await startHttpServer(async (request, response) => {
    const url = new URL(request.url ?? '', 'http://x');
    const body = await bodyOf(request);
    const one: Asked = {
      what: `${request.method} ${url.pathname.replace('/heappe/', '')}`,
      members: membersOf(body, url),
      bytes: Buffer.byteLength(body),
      body,
      headers: request.headers,
    };
    asked.push(one);
    const { status, body: said, page } = answer(one);
    if (page !== undefined) {
      response.writeHead(status, { 'content-type': 'text/plain' }).end(page);
      return;
    }
    const text = said === undefined ? '' : JSON.stringify(said);
    response.writeHead(status, { ...(text === '' ? {} : { 'content-type': 'application/json' }) }).end(text);
  });
  return Object.assign(server, { asked });
}
