/** What responds at the sockets of an agent, behind src/daemon/api-thread.ts. */
import http from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { type Surroundings, surroundingsOf } from '../cli/show/status-report.ts';
import type { Config } from '../config/config.ts';
import type { ApiThreadData } from '../daemon/api-thread.ts';
import { SharedState } from '../daemon/state.ts';
import { listenAt } from '../system/listen.ts';
import { Connections } from '../view/http/connections.ts';
import { appOf } from './app.ts';
import { EventFeed } from './events.ts';

interface ApiOptions extends ApiThreadData {
  readonly onFailure: (error: unknown) => void;
}

const HEADERS_MS = 10_000;
const TICK_MS = 2_000;
/** What surrounds the jobs, such as free disks, is read at most once in this time. */
const SURROUNDINGS_MS = 1_000;

/** Serves until it is closed. @throws what `listen` fails with; JobtailError */
export async function serveApi({ config, inner, onFailure }: ApiOptions): Promise<() => Promise<void>> {
  const state = new SharedState(config);
  const parts = { config, state, feed: new EventFeed(state, onFailure), surroundings: rarely(config), onFailure };
  const closing: (() => void)[] = [];
  for (const socket of ['control', 'read'] as const) {
    const limits = { headersTimeout: HEADERS_MS, requestTimeout: HEADERS_MS, connectionsCheckingInterval: TICK_MS };
    const server = http.createServer(limits);
    const connections = new Connections(server);
    const answer = getRequestListener(appOf(parts, socket).fetch);
    server.on('request', (request, response) => {
      if (!connections.begin(request, response)) return;
      // Who may open the socket may ask. A request under way outlives newer connections.
      connections.admit(request.socket);
      void answer(request, response);
    });
    const leave = await listenAt(server, { path: inner[socket] });
    closing.push(() => {
      leave();
      server.close();
      server.closeAllConnections();
    });
  }
  return async () => {
    for (const end of closing) end();
    state.close();
  };
}

function rarely(config: Config): () => Promise<Surroundings> {
  let last: Promise<Surroundings> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (last === undefined || now - readAt >= SURROUNDINGS_MS) {
      last = surroundingsOf(config);
      readAt = now;
    }
    return last;
  };
}
