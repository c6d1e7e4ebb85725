/** A view that serves, whichever process runs it: it reads from outside, as `agent status` does. */
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { listenAt } from '../system/listen.ts';
import { packageFile } from '../system/package-file.ts';
import { appOf, pageFilesIn } from './http/app.ts';
import { Connections } from './http/connections.ts';
import { addressOf, linkWith } from './link.ts';
import { partsOf, type ViewOptions, type ViewParts } from './parts.ts';
import { Proofs } from './proof.ts';
import { tokenFileOf, tokenOf } from './token.ts';

export interface RunningView {
  /** 0 of a Unix socket. */
  readonly port: number;
  /** A new link, which opens it once: it is for a person, and no log. */
  link(): string;
  readonly parts: ViewParts;
  close(): Promise<void>;
}

/** A stream has its heartbeat before. */
const IDLE_MS = 60_000;
const HEADERS_MS = 10_000;
const TICK_MS = 2_000;

/** Serves until it is closed. @throws what `listen` fails with; JobtailError */
export async function serveView(options: ViewOptions): Promise<RunningView> {
  const { settings } = options;
  const { listen } = settings;
  let port = 0;
  const proofs = new Proofs(tokenOf(tokenFileOf(settings)), () => addressOf(listen, port));
  const page = pageFilesIn(path.dirname(packageFile('dist/view/page/index.html')));
  const parts = partsOf(options);
  const limits = { headersTimeout: HEADERS_MS, requestTimeout: HEADERS_MS, connectionsCheckingInterval: TICK_MS };
  const server = http.createServer(limits);
  const connections = new Connections(server);
  const answer = getRequestListener(appOf(parts, { page, proofs, connections }).fetch);
  // Some proxies keep the path of publicUrl, others take it away.
  const { pathname } = new URL(settings.publicUrl ?? 'http://localhost/');
  server.on('request', (request, response) => {
    if (request.url?.startsWith(pathname) === true) request.url = request.url.slice(pathname.length - 1);
    if (connections.begin(request, response)) void answer(request, response);
  });
  server.timeout = IDLE_MS;
  let leave: () => void;
  try {
    leave = await listenAt(server, listen);
  } catch (error) {
    await parts.close();
    throw error;
  }
  if (!('path' in listen)) port = (server.address() as AddressInfo).port;
  return {
    port,
    parts,
    link: () => linkWith(proofs.ticket(), settings, port),
    async close() {
      leave();
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
      await parts.close();
    },
  };
}
