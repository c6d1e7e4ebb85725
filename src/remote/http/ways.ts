/**
 * How a server is reached: directly, or through a proxy. Each failure to connect names what did not answer, and is final:
 * undici itself would connect again at once for ever after some of them.
 */
import http from 'node:http';
import https from 'node:https';
import { type LookupFunction, Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import tls from 'node:tls';
import { buildConnector } from 'undici';
import { Secret } from '../../system/secret.ts';
import { describeFailure, MAX_HEADER_BYTES, notConnected, proxyRefusal, type Target } from './failures.ts';

type Connector = buildConnector.connector;

/** PEM material. `ca` replaces the roots of the system. Host names are always checked. */
export interface HttpTls {
  readonly ca?: Buffer | string | string[];
  readonly cert?: Buffer | string;
  readonly key?: Buffer | string;
}

/** How a server is reached. */
export interface HttpWay {
  readonly tls?: HttpTls;
  /** `http://host:port`; proxy variables of the environment are not read. One of https:// may have a CA of `tls`. */
  readonly proxy?: string;
  /** `user:password`. A secret. */
  readonly proxyUser?: string;
}

/** The user of the proxy, to be read anew for each connection. @throws JobtailError secret-unavailable */
export async function proxyUserOf(file: string | null): Promise<Pick<HttpWay, 'proxyUser'>> {
  if (file === null) return {};
  const source = { kind: 'file', path: file } as const;
  const secret = new Secret({ source, name: 'user of the proxy', env: {} });
  return { proxyUser: await secret.read(new AbortController().signal) };
}

interface ConnectorOptions {
  readonly connectMs: number;
  readonly lookup?: LookupFunction | undefined;
  /** Ends tunnels that are being opened. */
  readonly closed: AbortSignal;
  readonly roundTrip: RoundTrip;
}

/** Where a request for `url` is sent: a proxy receives the whole address, unless it only passes encrypted bytes on. */
export function routeOf(url: URL, { proxy, proxyUser }: HttpWay) {
  const path = `${url.pathname}${url.search}`;
  if (proxy === undefined || url.protocol === 'https:') return { origin: url.origin, path, headers: {} };
  const headers = { host: url.host, ...authorization(proxyUser) };
  return { origin: new URL(proxy).origin, path: `${url.origin}${path}`, headers };
}

/** The server of an address. */
export function targetOf(url: URL, proxy?: string): Target {
  const by = proxy === undefined ? {} : { by: new URL(proxy).host };
  return { host: url.hostname, port: url.port || (url.protocol === 'https:' ? '443' : '80'), ...by };
}

const authorization = (user: string | undefined): Record<string, string> =>
  user === undefined ? {} : { 'proxy-authorization': `Basic ${Buffer.from(user).toString('base64')}` };

export function connectorOf({ tls: material = {}, proxy, proxyUser }: HttpWay, options: ConnectorOptions): Connector {
  const { connectMs, lookup, roundTrip, closed } = options;
  // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED would otherwise disable the checks.
  const shared = { ...(lookup && { lookup }), timeout: connectMs, rejectUnauthorized: true };
  const toServer = buildConnector({ ...material, ...shared });
  if (proxy === undefined) return describing(roundTrip.measuring(toServer), targetAt);

  const address = new URL(proxy);
  const ca = material.ca === undefined ? {} : { ca: [...tls.rootCertificates, material.ca].flat() };
  const toProxy = describing(buildConnector({ ...shared, ...ca }), () => proxyTarget(address));
  const inTunnel = describing(toServer, (to) => ({ ...targetAt(to), by: address.host }));
  const { timeout, ...usual } = { ...shared, ...ca, headers: authorization(proxyUser), signal: closed };
  const opening = { address, options: usual, connectMs: timeout, roundTrip };
  return (to, callback) => {
    if (`${to.protocol}//${to.host}` === address.origin) return toProxy(to, callback);
    const use = (httpSocket: Socket) => inTunnel({ ...to, httpSocket } as buildConnector.Options, callback);
    openTunnel(targetAt(to), opening).then(use, (error: Error) => callback(error, null));
  };
}

const targetAt = ({ hostname, port, protocol }: buildConnector.Options): Target => ({
  host: hostname.includes(':') ? `[${hostname}]` : hostname,
  port: port || (protocol === 'https:' ? '443' : '80'),
});

const proxyTarget = (address: URL): Target => ({ ...targetOf(address), isProxy: true });

/** Lets a connector fail with a JobtailError. */
function describing(connector: Connector, target: (to: buildConnector.Options) => Target): Connector {
  return (to, callback) =>
    connector(to, (...[error, socket]) => {
      if (error === null) callback(null, socket);
      else callback(describeFailure(error, { ...target(to), isOpening: true }), null);
    });
}

interface OpeningSocket {
  readonly address: URL;
  readonly options: https.RequestOptions;
  readonly connectMs: number;
  readonly roundTrip: RoundTrip;
}

/** @throws JobtailError that names the proxy and what it did */
function openTunnel(target: Target, { address, options, connectMs, roundTrip }: OpeningSocket): Promise<Socket> {
  const { request } = address.protocol === 'https:' ? https : http;
  const authority = `${target.host}:${target.port}`;
  const headers = { ...options.headers, host: authority };
  const usual = { agent: false, maxHeaderSize: MAX_HEADER_BYTES } as const;
  return new Promise((resolve, reject) => {
    const asked = request(address, { ...options, ...usual, method: 'CONNECT', path: authority, headers });
    const late = () => asked.destroy(notConnected(proxyTarget(address), 'did not open a tunnel in time'));
    const timer = setTimeout(late, connectMs);
    let sentAt = Number.NaN;
    asked.once('socket', (socket) => {
      socket.once('connect', () => {
        sentAt = performance.now();
      });
    });
    asked.once('connect', ({ statusCode = 0, headers: answered }, socket: Socket) => {
      clearTimeout(timer);
      if (statusCode >= 200 && statusCode < 300) {
        roundTrip.add(performance.now() - sentAt);
        return resolve(socket);
      }
      // Its failures no longer matter.
      socket.on('error', () => undefined).destroy();
      reject(proxyRefusal({ ...target, by: address.host }, statusCode, answered['proxy-authenticate']));
    });
    asked.once('error', (error) => {
      clearTimeout(timer);
      reject(describeFailure(error, proxyTarget(address)));
    });
    asked.end();
  });
}

/** Connections that the round trip is taken from: the minimum counts, because delays only add. */
const MAX_MEASUREMENTS = 4;

export class RoundTrip {
  #measurements: number[] = [];

  get ms(): number {
    return this.#measurements.length === 0 ? 0 : Math.min(...this.#measurements);
  }

  /** Measures the TCP handshakes of `connector`. A proxy answers CONNECT when it is connected to the server. */
  measuring(connector: Connector): Connector {
    return (options, callback) => {
      let startedAt = performance.now();
      const socket: unknown = connector(options, callback);
      if (!(socket instanceof Socket)) return;
      // After the name is resolved.
      socket.once('lookup', () => {
        startedAt = performance.now();
      });
      socket.once('connect', () => this.add(performance.now() - startedAt));
    };
  }

  add(ms: number): void {
    this.#measurements = [...this.#measurements.slice(1 - MAX_MEASUREMENTS), ms];
  }
}
