/** The interface for programs and for members of the group: one list of routes (docs/openapi.json). */
import fs from 'node:fs';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { jsonReport } from '../cli/show/json.ts';
import { asJobtailError, ERROR_POLICIES, EXIT, JobtailError } from '../errors.ts';
import { type JobId, parseJobId } from '../job.ts';
import { packageFile } from '../system/package-file.ts';
import { newsLines, streamed } from '../view/http/answers.ts';
import type { Connections } from '../view/http/server.ts';
import type { ApiParts } from './work.ts';
import * as work from './work.ts';

type ApiContext = Context<{ Bindings: HttpBindings }>;

interface ApiRoute {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly answer: (context: ApiContext) => object | Promise<object>;
}

const MAX_BODY_BYTES = 64 * 1024;
/** So much is read of a longer one: who still sends does not read why it is refused. */
const MAX_READ_BYTES = 1024 * 1024;
const USUAL_WAIT_SECONDS = 60;
const MAX_WAIT_SECONDS = 3_600;

/** `GET` changes nothing, and is served at both sockets. */
export function routesOf(parts: ApiParts): readonly ApiRoute[] {
  const get = (path: string, answer: ApiRoute['answer']): ApiRoute => ({ method: 'GET', path, answer });
  return [
    get('/v1/openapi.json', () => JSON.parse(fs.readFileSync(packageFile('docs/openapi.json'), 'utf8')) as object),
    get('/v1/jobs', ({ req }) => work.statusOf(parts, req.query('all') === '1' ? 'all' : undefined)),
    get('/v1/jobs/:job', (context) => work.statusOf(parts, [jobOf(context)])),
    get('/v1/jobs/:job/results', (context) => work.resultsOf(parts, jobOf(context))),
    get('/v1/jobs/:job/wait', (context) =>
      work.waitFor(parts, jobOf(context), { seconds: secondsOf(context), signal: signalOf(context) }),
    ),
    get('/v1/jobs/:job/verification', (context) =>
      work.verify(parts, jobOf(context), {
        isComplete: context.req.query('complete') === '1',
        signal: signalOf(context),
      }),
    ),
    get('/v1/reported-jobs', (context) => work.reported(parts, signalOf(context))),
    get('/v1/notifications', () => work.notifications(parts)),
    get('/v1/events', (context) => eventStream(parts, context)),
    {
      method: 'POST',
      path: '/v1/jobs',
      answer: async (context) => work.watch(parts, await bodyOf(context), signalOf(context)),
    },
    {
      method: 'DELETE',
      path: '/v1/jobs/:job',
      answer: (context) =>
        context.req.query('now') === '1'
          ? work.endNow(parts, jobOf(context))
          : work.unwatch(parts, jobOf(context), signalOf(context)),
    },
    {
      method: 'POST',
      path: '/v1/jobs/:job/sync',
      answer: (context) => work.sync(parts, jobOf(context), signalOf(context)),
    },
  ];
}

export function appOf(parts: ApiParts, socket: 'read' | 'control', connections: Connections) {
  const app = new Hono<{ Bindings: HttpBindings }>();
  for (const { method, path, answer } of routesOf(parts)) {
    app.on(method, path, async (context) => {
      // Who may open the socket may ask. A request under way outlives newer connections.
      connections.admit(context.env.incoming.socket);
      // A page in a browser that is led to a socket sends them.
      if (context.req.header('origin') !== undefined)
        throw new JobtailError('usage', 'this is no interface for a page');
      if (method !== 'GET' && socket === 'read')
        throw new JobtailError('permission', 'this socket changes nothing', { hint: 'ask control.sock' });
      const found = await answer(context);
      return found instanceof Response ? found : jsonOf(found, 200);
    });
  }
  app.notFound(() =>
    refused(new JobtailError('usage', 'there is no such route', { hint: 'see docs/gateway.md' }), 404),
  );
  app.onError((thrown) => {
    const error = asJobtailError(thrown);
    if (error.code === 'internal') parts.onFailure(error);
    return refused(error);
  });
  return app;
}

const STATUS: Readonly<Record<number, number>> = {
  [EXIT.usage]: 400,
  [EXIT.notFound]: 404,
  [EXIT.failed]: 409,
  [EXIT.internal]: 500,
};

function refused(error: JobtailError, status?: number): Response {
  const { code, message, hint = null } = error;
  const usual = code === 'permission' ? 403 : (STATUS[ERROR_POLICIES[code].exitCode] ?? 503);
  return jsonOf({ error: { code, message, hint } }, status ?? usual);
}

function jsonOf(fields: object, status: number): Response {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  return new Response(jsonReport(fields), { status, headers });
}

function jobOf({ req }: ApiContext): JobId {
  const jobId = parseJobId(req.param('job') ?? '');
  if (jobId === undefined) throw new JobtailError('usage', 'expected a job id: a whole number from 1 to 2^63 - 1');
  return jobId;
}

function secondsOf({ req }: ApiContext): number {
  const text = req.query('seconds') ?? String(USUAL_WAIT_SECONDS);
  if (/^\d{1,4}$/.test(text) && Number(text) <= MAX_WAIT_SECONDS) return Number(text);
  throw new JobtailError('usage', `seconds: a whole number from 0 to ${MAX_WAIT_SECONDS} was expected`);
}

async function bodyOf({ env }: ApiContext): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of env.incoming) {
      bytes += chunk.length;
      if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
      if (bytes > MAX_READ_BYTES) break;
    }
  } catch {
    throw new JobtailError('usage', 'the body is not complete');
  }
  if (bytes > MAX_BODY_BYTES) throw new JobtailError('usage', 'the body is too long');
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw new JobtailError('usage', 'the body is no JSON');
  }
}

/** One line of JSON for each event, and an empty one now and then. */
function eventStream(parts: ApiParts, context: ApiContext): Response {
  const lines = newsLines(parts.feed.reader(), signalOf(context));
  return streamed(parts, context, lines, { headers: { 'content-type': 'application/x-ndjson' }, end: () => {} });
}

/** Fires when the client is gone. */
function signalOf({ env }: ApiContext): AbortSignal {
  const over = new AbortController();
  env.outgoing.once('close', () => over.abort());
  return over.signal;
}
