/** A small server that speaks REST: it tells what it was asked, and answers what a test says. */
import type { IncomingMessage } from 'node:http';
import { bodyOf, startHttpServer, type WireServer } from './wire-server.ts';

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
