/**
 * The sockets for members of the group and for programs (docs/gateway.md). Node.js shows no user of a connection, so
 * owner, group and mode of a socket decide who may ask. What responds is a thread of its own (src/api), which begins with
 * the first connection and ends some time after the last one: it needs as much memory as an idle agent.
 */
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Log } from '../agent/ports/host.ts';
import { type Config, socketsOf } from '../config/config.ts';
import { asJobtailError } from '../errors.ts';
import { listenAt } from '../system/listen.ts';
import { groupId } from '../system/owners.ts';
import { packageFile } from '../system/package-file.ts';
import { ServingThread } from './serving-thread.ts';

export interface ApiThreadData {
  /** That of the first connection: a changed one comes with a pulse. */
  readonly config: Config;
  /** Where the thread listens, for this process alone. */
  readonly inner: Readonly<Record<SocketName, string>>;
}

type SocketName = 'read' | 'control';

const SCOPE = 'the sockets';
const HINT = 'let the user of the agent write to api.directory, or set it to another directory';
const BY_SYSTEMD = '; a unit of systemd needs a drop-in (docs/gateway.md)';
/** Of each socket; the thread itself closes the oldest before. */
const MAX_CONNECTIONS = 512;
const IDLE_MS = 60_000;
/** The beginning of the name of the directory of the thread. */
const PRIVATE = '.t-';

const placeOf = ({ api, fleet, state }: Config) => ({ api, fleet, state });

export class ApiThread {
  readonly #log: Log;
  readonly #thread: ServingThread<ApiThreadData>;
  readonly #connections = new Set<net.Socket>();
  /** One change of the thread after the other. */
  #changed: Promise<void> = Promise.resolve();
  #config: Config | undefined;
  #closing: (() => void)[] = [];
  #idle: NodeJS.Timeout | undefined;

  constructor(log: Log) {
    this.#log = log;
    this.#thread = new ServingThread({
      program: packageFile('dist/api/worker.js'),
      pulse: () => ({ config: this.#config }),
      onServing: () => {
        this.#thread.pulse();
        log.debug({}, 'thread of the sockets began');
      },
      onFailure: (err) => log.error({ scope: SCOPE, err }, 'request at a socket failed'),
      onEnded: (_, err, isFirst) =>
        log[isFirst ? 'error' : 'debug']({ scope: SCOPE, err }, 'thread of the sockets ended'),
    });
  }

  /** Listens by this configuration. Where it changes nothing of the sockets, no client notices. A failure disables only them. */
  async use(config: Config): Promise<void> {
    const before = this.#config;
    const isOpen = this.#closing.length > 0 && before !== undefined;
    if (isOpen && JSON.stringify(placeOf(config)) === JSON.stringify(placeOf(before))) {
      this.#config = config;
      this.#thread.pulse();
      return;
    }
    await this.close();
    this.#config = config;
    const sockets = socketsOf(config);
    const { directory, controlGroup } = config.api;
    if (sockets === null || directory === null) return;
    try {
      // Of the group; systemd makes that of the unit.
      fs.mkdirSync(directory, { recursive: true, mode: 0o750 });
      const own = fs.mkdtempSync(path.join(directory, PRIVATE));
      this.#closing.push(() => fs.rmSync(own, { recursive: true, force: true }));
      const inner = { read: path.join(own, 'r'), control: path.join(own, 'c') };
      const serve = (name: SocketName, group?: number | 'own') =>
        this.#listen({ path: sockets[name], group }, (connection) => this.#pass(connection, { config, inner }, name));
      await serve('read', 'own');
      // Of an agent that was killed: another one that runs would have the socket.
      for (const name of fs.readdirSync(directory).filter((one) => one.startsWith(PRIVATE)))
        if (name !== path.basename(own)) fs.rmSync(path.join(directory, name), { recursive: true, force: true });
      if (controlGroup === null) await serve('control');
      else
        await (async () => serve('control', groupId(controlGroup)))().catch((thrown: unknown) => {
          const { code: why, message: err, hint: known } = asJobtailError(thrown);
          const hint =
            why === 'config' ? known : `let the user of the agent be in the group ${controlGroup}${BY_SYSTEMD}`;
          this.#log.error({ scope: SCOPE, code: 'config', err, hint }, 'api.controlGroup cannot be used');
          return serve('control');
        });
      this.#log.info({ path: directory }, 'sockets listening');
    } catch (thrown) {
      const err = asJobtailError(thrown).message;
      this.#log.warn({ scope: SCOPE, path: directory, err, hint: HINT }, 'cannot listen at the sockets');
      await this.close();
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    // Before the connections: a client that connects again at once would begin the thread anew.
    for (const end of this.#closing.splice(0)) end();
    for (const connection of this.#connections) connection.destroy();
    await this.#change(null);
  }

  async #listen(at: Parameters<typeof listenAt>[1], onConnection: (connection: net.Socket) => void): Promise<void> {
    const server = net.createServer(onConnection);
    server.maxConnections = MAX_CONNECTIONS;
    const leave = await listenAt(server, at);
    this.#closing.push(() => {
      leave();
      server.close();
    });
  }

  /** Connects a client with the thread. */
  async #pass(outer: net.Socket, data: ApiThreadData, name: SocketName): Promise<void> {
    clearTimeout(this.#idle);
    this.#connections.add(outer);
    outer.on('error', () => {});
    try {
      await this.#change(data);
      await this.#thread.serving();
      const inner = net.connect(data.inner[name]);
      await Promise.all([pipeline(outer, inner), pipeline(inner, outer)]);
    } catch {
      // Either side went away.
    } finally {
      outer.destroy();
      this.#connections.delete(outer);
      if (this.#connections.size === 0) this.#idle = setTimeout(() => void this.#change(null), IDLE_MS);
    }
  }

  #change(data: ApiThreadData | null): Promise<void> {
    this.#changed = this.#changed.then(() => this.#thread.use(data));
    return this.#changed;
  }
}
