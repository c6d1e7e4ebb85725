/** The sockets of an agent. Node.js shows no user of a connection, so mode and group of a socket decide who may ask. */
import { once } from 'node:events';
import http from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { type Surroundings, surroundingsOf } from '../cli/show/status-report.ts';
import { type Config, socketsOf } from '../config/config.ts';
import { SharedState } from '../daemon/state.ts';
import { asJobtailError } from '../errors.ts';
import { listenAt } from '../system/listen.ts';
import { groupId } from '../system/owners.ts';
import { Connections } from '../view/http/connections.ts';
import { appOf } from './app.ts';
import { EventFeed } from './events.ts';

interface ApiOptions {
  readonly config: Config;
  readonly onFailure: (error: unknown) => void;
  /** Receives why the group of `api.controlGroup` cannot use its socket: the user of the agent can. */
  readonly onGroupRefused: (error: Error) => void;
}

const HEADERS_MS = 10_000;
const TICK_MS = 2_000;
/** What surrounds the jobs, such as free disks, is read at most once in this time. */
const SURROUNDINGS_MS = 1_000;

/** Serves until it is closed. @throws what `listen` fails with; JobtailError */
export async function serveApi({ config, onFailure, onGroupRefused }: ApiOptions): Promise<() => Promise<void>> {
  const sockets = socketsOf(config);
  const state = new SharedState(config);
  const parts = { config, state, feed: new EventFeed(state, onFailure), surroundings: rarely(config), onFailure };
  const closing: (() => Promise<void>)[] = [];
  const serve = async (socket: 'read' | 'control', group: number | 'own' | undefined) => {
    const limits = { headersTimeout: HEADERS_MS, requestTimeout: HEADERS_MS, connectionsCheckingInterval: TICK_MS };
    const server = http.createServer(limits);
    const connections = new Connections(server);
    const answer = getRequestListener(appOf(parts, socket).fetch);
    server.on('request', (request, response) => {
      if (connections.begin(request, response)) void answer(request, response);
    });
    const leave = await listenAt(server, { path: sockets?.[socket] ?? '', group });
    closing.push(async () => {
      leave();
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    });
  };
  const close = async () => {
    await Promise.all(closing.map((one) => one()));
    state.close();
  };
  const { controlGroup } = config.api;
  try {
    await serve('read', 'own');
    await (async () => serve('control', controlGroup === null ? undefined : groupId(controlGroup)))().catch(
      (thrown) => {
        if (controlGroup === null) throw thrown;
        onGroupRefused(asJobtailError(thrown));
        return serve('control', undefined);
      },
    );
  } catch (error) {
    await close();
    throw error;
  }
  return close;
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
