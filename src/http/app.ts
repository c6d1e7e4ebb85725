/**
 * The HTTP application of the agent: the view, the sockets and the metrics are each a list of routes of it, behind gates
 * that decide who may ask.
 */
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import { asJobtailError, ERROR_POLICIES, type ErrorCode, EXIT, type JobtailError } from '../errors.ts';
import { jsonReport } from '../json-report.ts';
import { Refused } from './refused.ts';

export type HttpEnv = { Bindings: HttpBindings };
export type HttpContext = Context<HttpEnv>;
type HttpApp = Hono<HttpEnv>;
export type HttpGate = MiddlewareHandler<HttpEnv>;

export interface HttpRoute {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  /** An object is sent as the JSON of the commands. */
  readonly answer: (context: HttpContext) => object | Promise<object>;
}

export const get = (path: string, answer: HttpRoute['answer']): HttpRoute => ({ method: 'GET', path, answer });

/** Of every response: the page may load its own files, ask its own server, and show what is previewed in a frame. */
const HEADERS = {
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    imgSrc: ["'self'", 'blob:', 'data:'],
    fontSrc: ["'self'"],
    connectSrc: ["'self'"],
    frameSrc: ["'self'"],
    manifestSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
  },
  permissionsPolicy: { camera: [], geolocation: [], microphone: [] },
  // The policy has them; a proxy with TLS decides the third.
  xFrameOptions: false,
  xXssProtection: false,
  strictTransportSecurity: false,
  // A preview has a policy of its own.
  overwrite: false,
};

interface AppOptions {
  readonly routes: readonly HttpRoute[];
  /** Each throws Refused or JobtailError, or goes on to the next one. */
  readonly gates: readonly HttpGate[];
  /** What to read where nothing is at an address. */
  readonly hint: string;
  /** Receives errors that should not happen. */
  readonly onFailure: (error: unknown) => void;
}

export function appOf({ routes, gates, hint, onFailure }: AppOptions): HttpApp {
  const app: HttpApp = new Hono();
  const notKept: HttpGate = async (context, next) => {
    context.header('cache-control', 'no-store');
    await next();
  };
  app.use(secureHeaders(HEADERS), notKept, ...gates);
  for (const { method, path, answer } of routes) {
    app.on(method, path, async (context) => {
      const found = await answer(context);
      return found instanceof Response ? found : jsonOf(found, 200);
    });
  }
  app.notFound(() => refusal(new Refused(404, 'there is nothing at this address', { hint })));
  app.onError((thrown) => {
    // The streams report errors of the store, too.
    const error = asJobtailError(thrown);
    if (error.code === 'internal') onFailure(thrown);
    return refusal(error);
  });
  return app;
}

const STATUS: Readonly<Record<number, number>> = {
  [EXIT.usage]: 400,
  [EXIT.notFound]: 404,
  [EXIT.failed]: 409,
  [EXIT.internal]: 500,
};

/** Each response that is no success has the same shape. */
function refusal(error: JobtailError): Response {
  const { code, message, hint = null } = error;
  const { status, version = undefined } = error instanceof Refused ? error : { status: statusOf(code) };
  return jsonOf({ error: { code, message, hint, version } }, status);
}

const statusOf = (code: ErrorCode) => STATUS[ERROR_POLICIES[code].exitCode] ?? 503;

function jsonOf(fields: object, status: number): Response {
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    ...(status === 429 ? { 'retry-after': '1' } : {}),
  };
  return new Response(jsonReport(fields), { status, headers });
}
