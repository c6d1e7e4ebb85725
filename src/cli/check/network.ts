/** `agent check`: the connection to the middleware: name, certificate, clock, namespace. */

import dns from 'node:dns/promises';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import type { TLSSocket } from 'node:tls';
import { addressesOf, type Config } from '../../config/config.ts';
import { loadTls } from '../../config/load.ts';
import { wayTo } from '../../daemon/connection.ts';
import { JobtailError } from '../../errors.ts';
import { printable } from '../../printable.ts';
import { describeFailure } from '../../remote/http/failures.ts';
import { DAY_MS } from '../../system/clock.ts';
import { namespaceOf } from './description.ts';
import { type Finding, type Findings, note, ok, warning } from './findings.ts';

const TIMEOUT_MS = 10_000;
const SOON_DAYS = 14;
/** A larger difference may invalidate certificates or tokens. */
const CLOCK_MS = 60_000;

/** The target of a connection: a host of the configuration, or the proxy. */
interface Place {
  readonly host: string;
  readonly port: number;
  readonly url: URL;
}

export async function checkWay(findings: Findings, config: Config): Promise<boolean> {
  let isOpen = true;
  for (const place of placesOf(config)) {
    isOpen =
      (await findings.step('name', () => checkName(place))) &&
      (await findings.step('connection', () => checkConnection(config, place))) &&
      isOpen;
  }
  return isOpen;
}

function placesOf({ service }: Config): Place[] {
  const urls = service.proxy === null ? addressesOf(service) : [service.proxy];
  const places = urls.map((url) => placeOf(new URL(url)));
  return places.filter((place, index) => index === places.findIndex(({ url }) => url.origin === place.url.origin));
}

function placeOf(url: URL): Place {
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  // A URL has an IPv6 address in brackets.
  return { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port, url };
}

async function checkName({ host }: Place): Promise<Finding[]> {
  if (net.isIP(host) !== 0) return [ok(`${host} is an address`)];
  const found = await dns.lookup(host, { all: true }).catch((error: NodeJS.ErrnoException) => {
    throw new JobtailError('unreachable', `cannot resolve the host name ${host} (${error.code})`, {
      hint: 'check the addresses in the section service, and the DNS of this machine',
    });
  });
  return [ok(`${host} is ${found.map(({ address }) => address).join(', ')}`)];
}

/** The connection, its certificate, and the clock of the server, by one request without content. */
async function checkConnection(config: Config, { host, port, url }: Place): Promise<Finding[]> {
  const found: Finding[] = url.protocol === 'https:' ? [] : [note(`${url.origin} is not encrypted`)];
  const { request } = url.protocol === 'https:' ? https : http;
  const material = await loadTls(config);
  const startedAt = performance.now();
  let isOpen = false;
  const date = await new Promise<string | undefined>((resolve, reject) => {
    const call = request(url, { method: 'HEAD', timeout: TIMEOUT_MS, agent: false, ...material }, (response) => {
      response.destroy();
      resolve(response.headers.date);
    });
    call.once('socket', (socket) => {
      socket.once('connect', () => {
        isOpen = url.protocol === 'http:';
        found.unshift(ok(`${host}:${port} answers in ${Math.round(performance.now() - startedAt)} ms`));
      });
      socket.once('secureConnect', () => {
        isOpen = true;
        found.push(...certificateOf(socket as TLSSocket));
      });
    });
    call.once('timeout', () => call.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })));
    // What answers nothing to this request may answer a call.
    call.once('error', (error) =>
      isOpen ? resolve(undefined) : reject(describeFailure(error, { host, port: String(port) })),
    );
    call.end();
  });
  return [...found, config.service.proxy === null ? clockOf(date) : note('its clock is not compared: it is the proxy')];
}

function certificateOf(socket: TLSSocket): Finding[] {
  const { valid_to: validTo } = socket.getPeerCertificate();
  const days = Math.floor((Date.parse(validTo) - Date.now()) / DAY_MS);
  const found = [ok(`${socket.getProtocol()}, certificate valid for ${days} days`)];
  if (days >= SOON_DAYS) return found;
  return [...found, warning(`the certificate ends on ${validTo}`, 'ask the operator of the service to renew it')];
}

/** By the `Date` header of any response. */
function clockOf(date: string | undefined): Finding {
  const offMs = Date.parse(date ?? '') - Date.now();
  if (Number.isNaN(offMs)) return note('its clock is not compared: it sends no time');
  if (Math.abs(offMs) < CLOCK_MS) return ok('its clock is that of this machine');
  const off = `${Math.abs(Math.round(offMs / 1000))} s ${offMs < 0 ? 'behind' : 'ahead of'} this machine`;
  return warning(`its clock is ${off}`, 'set the clock of this machine by NTP; certificates and tokens depend on it');
}

/** Compares the namespace with that of the service; a slash at its end counts. */
export async function checkNamespace(config: Config, signal: AbortSignal): Promise<Finding[]> {
  if (config.service.protocol === 'rest') return [note('nothing to compare: REST has no namespace')];
  const { fileTransferUrl, namespace } = config.service;
  const found = await namespaceOf(fileTransferUrl, signal, await wayTo(config));
  if (found === undefined) return [note('not compared: the service has no description (WSDL)')];
  if (found === namespace) return [ok(`${namespace}, as the service has it`)];
  return [warning(`the service has ${printable(found)}, the configuration ${namespace}`, 'correct service.namespace')];
}
