/** The addresses of `metrics.listen`: metrics and health. Loaded with the first configuration that has them. */
import { appOf, get, type HttpContext } from '../http/app.ts';
import { type Served, serveHttp } from '../http/server.ts';
import type { Place } from '../system/listen.ts';

interface PortAnswers {
  readonly metrics: () => Promise<string>;
  readonly unhealthy: () => string | undefined;
  readonly unready: () => string | undefined;
  /** Maximum time of one request, and of reading its response, in milliseconds. */
  readonly requestMs?: number;
}

const REQUEST_MS = 10_000;
/** That of prom-client. */
const PROMETHEUS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export function serveMetrics(
  listen: Place,
  { metrics, unhealthy, unready, requestMs = REQUEST_MS }: PortAnswers,
): Promise<Served> {
  // Concurrent requests share one computation.
  let adding: Promise<string> | undefined;
  const shared = () => {
    adding ??= metrics().finally(() => {
      adding = undefined;
    });
    return adding;
  };
  const verdict = (context: HttpContext, why: string | undefined) =>
    context.text(`${why ?? 'ok'}\n`, why === undefined ? 200 : 503);
  const routes = [
    get('/metrics', async (context) => context.body(await shared(), 200, { 'content-type': PROMETHEUS_CONTENT_TYPE })),
    get('/healthz', (context) => verdict(context, unhealthy())),
    get('/readyz', (context) => verdict(context, unready())),
  ];
  const app = appOf({
    routes,
    gates: [],
    hint: 'there is /metrics, /healthz and /readyz',
    // The response has the failure.
    onFailure: () => {},
  });
  return serveHttp(listen, () => app, { idleMs: requestMs, requestMs });
}
