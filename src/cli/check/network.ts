/** `agent check`: the connection to the middleware: address, certificate, clock, namespace. */
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import type { TLSSocket } from 'node:tls';
import { addressesOf, type Config } from '../../config/config.ts';
import { loadTls } from '../../config/load.ts';
import { wayTo } from '../../daemon/connection.ts';
import { printable } from '../../printable.ts';
import { describeFailure } from '../../remote/http/failures.ts';
import { DAY_MS } from '../../system/clock.ts';
import { namespaceOf } from './description.ts';
import { type Finding, note, ok, warnIf, warning } from './findings.ts';

const TIMEOUT_MS = 10_000;
const SOON_DAYS = 14;
/** A larger difference may invalidate certificates or tokens. */
const CLOCK_MS = 60_000;

/** Where connections go: one address of each server, or of the proxy. */
export function serversOf({ service }: Config): URL[] {
  const urls = (service.proxy === null ? addressesOf(service) : [service.proxy]).map((url) => new URL(url));
  return [...new Map(urls.map((url) => [url.origin, url])).values()];
}

/** The connection, its certificate, and the clock of the server, by one request without content. */
export async function checkConnection(config: Config, url: URL, signal: AbortSignal): Promise<Finding[]> {
  // A URL has an IPv6 address in brackets.
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const isSecure = url.protocol === 'https:';
  const port = url.port || (isSecure ? '443' : '80');
  const found: Finding[] = [];
  const startedAt = performance.now();
  const options = { method: 'HEAD', timeout: TIMEOUT_MS, agent: false, signal, ...(await loadTls(config)) };
  const call = (isSecure ? https : http).request(url, options);
  call.once('socket', (socket) => {
    socket.once(isSecure ? 'secureConnect' : 'connect', () => {
      const address = net.isIP(host) === 0 ? ` (${socket.remoteAddress})` : '';
      found.push(ok(`${host}:${port}${address} answers in ${Math.round(performance.now() - startedAt)} ms`));
      found.push(...(isSecure ? certificateOf(socket as TLSSocket) : [note(`${url.origin} is not encrypted`)]));
    });
  });
  call.once('timeout', () => call.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })));
  // Also after the response.
  call.on('error', () => {});
  call.end();
  const date = await once(call, 'response').then(
    ([response]) => {
      call.destroy();
      return (response as http.IncomingMessage).headers.date;
    },
    (error) => {
      signal.throwIfAborted();
      // What answers nothing to this request may answer a call.
      if (found.length === 0) throw describeFailure(error, { host, port });
      return undefined;
    },
  );
  return [...found, config.service.proxy === null ? clockOf(date) : note('its clock is not compared: it is the proxy')];
}

function certificateOf(socket: TLSSocket): Finding[] {
  const { valid_to: validTo } = socket.getPeerCertificate();
  const days = Math.floor((Date.parse(validTo) - Date.now()) / DAY_MS);
  const hint = 'ask the operator of the service to renew it';
  return [
    ok(`${socket.getProtocol()}, certificate valid for ${days} days`),
    ...warnIf(days < SOON_DAYS, `the certificate ends on ${validTo}`, hint),
  ];
}

/** By the `Date` header of any response. */
function clockOf(date: string | undefined): Finding {
  const offMs = Date.parse(date ?? '') - Date.now();
  if (Number.isNaN(offMs)) return note('its clock is not compared: it sends no time');
  if (Math.abs(offMs) < CLOCK_MS) return ok('its clock is that of this machine');
  const off = `${Math.abs(Math.round(offMs / 1000))} s ${offMs < 0 ? 'behind' : 'ahead of'} this machine`;
  const files =
    offMs < 0 ? '' : '; if it is ahead of the cluster, files of the first minutes of a job are never listed';
  return warning(`its clock is ${off}${files}`, 'set the clocks by NTP; certificates and tokens depend on them');
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
