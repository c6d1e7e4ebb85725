/** A view that serves: the parts put together. It reads from outside, as `agent status` does, whoever runs it. */
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { isOnNetworkFileSystem } from '../store/database.ts';
import { packageFile } from '../system/package-file.ts';
import { Contents } from './content/contents.ts';
import { LineIndexes } from './content/line-indexes.ts';
import type { AgentFigure } from './events/agent-figures.ts';
import { Changes } from './events/changes.ts';
import { FileLengths } from './events/file-lengths.ts';
import { Recorder } from './events/recorder.ts';
import { Snapshots } from './events/snapshots.ts';
import { appOf } from './http/app.ts';
import { Connections } from './http/connections.ts';
import { gateOf } from './http/gate.ts';
import { Limits } from './http/limits.ts';
import { PageFiles } from './http/page-files.ts';
import { Sessions } from './http/sessions.ts';
import { tokenFileOf, tokenOf } from './http/token.ts';
import { linkWith } from './link.ts';
import { listenAt } from './listen.ts';
import { OpenStore } from './open-store.ts';
import { STATE, type ViewParts } from './parts.ts';
import type { ViewSettings } from './settings.ts';

export interface ServeOptions {
  readonly settings: ViewSettings;
  /** What the agent counted since it was last asked; null where this is not its process. */
  readonly agentFigure: () => Promise<AgentFigure | null>;
  readonly onFailure: (error: unknown) => void;
}

export interface RunningView {
  /** 0 of a Unix socket. */
  readonly port: number;
  /** A new link, which opens it once: it is for a person, and no log. */
  link(): string;
  readonly parts: ViewParts;
  close(): Promise<void>;
}

/** A connection of which nothing moves for so long, twice as long while it is written to, is closed; a stream has its heartbeat before. */
const IDLE_MS = 60_000;
const HEADERS_MS = 10_000;
const LOOK_MS = 2_000;

/** Serves until it is closed. @throws what `listen` fails with; JobtailError */
export async function serveView({ settings, agentFigure, onFailure }: ServeOptions): Promise<RunningView> {
  const sessions = new Sessions(tokenOf(tokenFileOf(settings)));
  const page = new PageFiles(path.dirname(packageFile('dist/view/page/index.html')));
  const parts = partsOf({ settings, agentFigure, onFailure });
  const { listen } = settings;
  let port = 0;
  const limits = { headersTimeout: HEADERS_MS, requestTimeout: HEADERS_MS, connectionsCheckingInterval: LOOK_MS };
  const server = http.createServer(limits);
  const connections = new Connections(server);
  const answer = getRequestListener(appOf({ parts, page }).fetch);
  const place = () => ('path' in listen ? listen.path : port);
  server.on('request', gateOf({ settings, sessions, connections, place, answer }));
  server.timeout = IDLE_MS;
  let leave: () => void;
  try {
    leave = await listenAt(server, listen);
  } catch (error) {
    closeParts(parts);
    throw error;
  }
  if (!('path' in listen)) port = (server.address() as AddressInfo).port;
  return {
    port,
    parts,
    link: () => linkWith(sessions.ticket(), settings, port),
    async close() {
      leave();
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
      closeParts(parts);
    },
  };
}

function partsOf({ settings, agentFigure, onFailure }: ServeOptions): ViewParts {
  const { mirrorDirectory } = settings;
  const store = new OpenStore(settings);
  const changes = new Changes();
  const onChange = () => changes.tell(STATE);
  const contents = new Contents(mirrorDirectory, store.get);
  const indexes = new LineIndexes();
  const onNetwork = isOnNetworkFileSystem(mirrorDirectory);
  const recorder = new Recorder({ settings, store, agentFigure, onFigure: onChange });
  return {
    ...{ settings, onFailure, store, changes, contents, indexes, recorder },
    lengths: new FileLengths({ mirrorDirectory, onNetwork, contents, indexes, onChange: (name) => changes.tell(name) }),
    snapshots: new Snapshots({ settings, store, growth: recorder.growth, onChange }),
    limits: new Limits(),
  };
}

function closeParts({ recorder, snapshots, store }: ViewParts): void {
  recorder.close();
  snapshots.close();
  store.close();
}
