/** The HTTP of webhooks: the proxy and the certificates of each rule. */
import fs from 'node:fs';
import tls from 'node:tls';
import type { Config } from '../config/config.ts';
import { asJobtailError, JobtailError } from '../errors.ts';
import { HttpClient, type HttpRequest, type HttpTls } from '../remote/http/http-client.ts';
import { proxyUserOf } from '../remote/http/ways.ts';
import { isLoopback, lookupByProgram } from '../system/names.ts';
import type { RuleSettings } from './rules.ts';

type Way = Pick<RuleSettings, 'proxy' | 'caFile'>;

export interface NotifyHttp {
  request(request: HttpRequest, way: Way): ReturnType<HttpClient['request']>;
  close(): Promise<void>;
}

/** A body is only waited for where it may explain a refusal. */
const LIMITS = { connectMs: 10_000, headersMs: 30_000, idleMs: 1_000, totalMs: 60_000 };

/** Those of the client are for the service: a rule has a CA file of its own, and no certificate. */
function hintOf({ code, hint = '' }: JobtailError): string {
  if (code === 'timeout') return 'the receiver is slow or hangs: see its log, and the network to it';
  if (hint.includes('service.tls.certFile')) return 'let the receiver accept requests without a client certificate';
  return hint.replaceAll('service.tls.caFile', 'notify[].caFile');
}

/** The proxy of the rule or the service, not for this machine; the roots of Node.js, of the service and of the rule. */
export function notifyHttp({
  service,
}: {
  readonly service: Partial<Config['service']> & { readonly proxy: string | null };
}): NotifyHttp {
  const clients = new Map<string, HttpClient>();
  const proxyOf = (url: string, { proxy }: Way) => {
    const chosen = proxy ?? (isLoopback(new URL(url).hostname) ? 'none' : service.proxy);
    return chosen === 'none' ? null : chosen;
  };
  return {
    async request(request, way) {
      const proxy = proxyOf(request.url, way);
      const user = proxy !== null && proxy === service.proxy ? await proxyUserOf(service.proxyUserFile ?? null) : {};
      const key = JSON.stringify([proxy, way.caFile, user]);
      const client =
        clients.get(key) ??
        new HttpClient({
          limits: LIMITS,
          lookup: lookupByProgram,
          tls: rootsWith(service.tls?.caFile ?? null, way.caFile),
          ...(proxy === null ? {} : { proxy, ...user }),
        });
      clients.set(key, client);
      return await client.request(request).catch((thrown: unknown) => {
        const error = asJobtailError(thrown);
        const { code, message, retryAfterMs } = error;
        throw new JobtailError(code, message, { hint: hintOf(error), retryAfterMs });
      });
    },
    close: async () => void (await Promise.all([...clients.values()].map((client) => client.close()))),
  };
}

/** A CA of `NODE_EXTRA_CA_CERTS` counts as well: a list takes the place of the default one. */
function rootsWith(ofService: string | null, ofRule: string | null): HttpTls {
  if (ofService === null && ofRule === null) return {};
  const { NODE_EXTRA_CA_CERTS } = process.env;
  const usual = Object.entries({ 'service.tls.caFile': ofService, NODE_EXTRA_CA_CERTS });
  const files = usual.filter(([, file]) => file && fs.existsSync(file));
  if (ofRule !== null) files.push(['notify[].caFile', ofRule]);
  return { ca: [...tls.rootCertificates, ...files.map(([key, file]) => certificatesIn(key, file ?? ''))] };
}

function certificatesIn(key: string, file: string): string {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new JobtailError('config', `${key}: ${file}: the file cannot be read (${code})`, { cause });
  }
}
