/** The thread of the sockets, behind src/daemon/api-thread.ts: a slow query there delays no poll. */
import { workerData } from 'node:worker_threads';
import { type Surroundings, surroundingsOf } from '../cli/show/status-report.ts';
import type { Config } from '../config/config.ts';
import type { ApiThreadData } from '../daemon/api-thread.ts';
import { serveInThread } from '../daemon/serving-thread.ts';
import { SharedState } from '../daemon/state.ts';
import { appOf } from '../http/app.ts';
import { serveHttp } from '../http/server.ts';
import { EventFeed } from './events.ts';
import { gateOf, routesOf } from './routes.ts';

/** What surrounds the jobs, such as free disks, is read at most once in this time. */
const SURROUNDINGS_MS = 1_000;

const { config: first, inner } = workerData as ApiThreadData;
let current = first;
const serveAll = async (onFailure: (error: unknown) => void) => {
  const state = new SharedState(first);
  const parts = {
    ...{ state, feed: new EventFeed(state, onFailure), surroundings: rarely(), onFailure },
    get config() {
      return current;
    },
  };
  const serve = (socket: 'read' | 'control') =>
    serveHttp({ path: inner[socket] }, (connections) =>
      appOf({ routes: routesOf(parts), gates: [gateOf(socket, connections)], hint: 'see docs/gateway.md', onFailure }),
    );
  const [control, read] = [await serve('control'), await serve('read')];
  return {
    port: 0,
    async close() {
      await Promise.all([control.close(), read.close()]);
      state.close();
    },
  };
};
await serveInThread(serveAll, ({ config }: { readonly config?: Config }) => {
  current = config ?? current;
});

function rarely(): () => Promise<Surroundings> {
  let last: Promise<Surroundings> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (last === undefined || now - readAt >= SURROUNDINGS_MS) {
      last = surroundingsOf(current);
      readAt = now;
    }
    return last;
  };
}
