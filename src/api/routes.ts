/** The interface for programs and for members of the group: one list of routes (docs/openapi.json). */
import fs from 'node:fs';
import { JobtailError } from '../errors.ts';
import { get, type HttpContext, type HttpGate, type HttpRoute } from '../http/app.ts';
import { Refused } from '../http/refused.ts';
import type { Connections } from '../http/server.ts';
import { newsLines, streamed } from '../http/streams.ts';
import { type JobId, parseJobId } from '../job.ts';
import { printable } from '../printable.ts';
import { packageFile } from '../system/package-file.ts';
import type { ApiParts } from './work.ts';
import * as work from './work.ts';

const MAX_BODY_BYTES = 64 * 1024;
/** So much is read of a longer one: who still sends does not read why it is refused. */
const MAX_READ_BYTES = 1024 * 1024;
const USUAL_WAIT_SECONDS = 60;
const MAX_WAIT_SECONDS = 3_600;

const PARAMETERS: ReadonlySet<string> = new Set(['all', 'complete', 'now', 'seconds']);

/** `GET` changes nothing, and is served at both sockets. */
export function routesOf(parts: ApiParts): readonly HttpRoute[] {
  return [
    get('/v1/openapi.json', () => JSON.parse(fs.readFileSync(packageFile('docs/openapi.json'), 'utf8')) as object),
    get('/v1/jobs', ({ req }) => work.statusOf(parts, isSet(req, 'all') ? 'all' : undefined)),
    get('/v1/jobs/:job', (context) => work.statusOf(parts, [jobOf(context)])),
    get('/v1/jobs/:job/results', (context) => work.resultsOf(parts, jobOf(context))),
    get('/v1/jobs/:job/wait', (context) =>
      work.waitFor(parts, jobOf(context), { seconds: secondsOf(context), signal: signalOf(context) }),
    ),
    get('/v1/jobs/:job/verification', (context) =>
      work.verify(parts, jobOf(context), {
        isComplete: isSet(context.req, 'complete'),
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
        isSet(context.req, 'now')
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

/** Who may open the socket may ask; what changes something, at the control socket alone. */
export const gateOf =
  (socket: 'read' | 'control', connections: Connections): HttpGate =>
  async ({ req, env }, next) => {
    // A request under way outlives newer connections.
    connections.admit(env.incoming.socket);
    // A page in a browser that is led to a socket sends them.
    if (req.header('origin') !== undefined) throw new JobtailError('usage', 'this is no interface for a page');
    if (req.method !== 'GET' && socket === 'read')
      throw new Refused(403, 'this socket changes nothing', { hint: 'ask control.sock' });
    for (const [name, values] of Object.entries(req.queries()))
      if (!PARAMETERS.has(name) || values.length > 1)
        throw new JobtailError('usage', `the address has an unexpected parameter: ${printable(name)}`);
    await next();
  };

function jobOf({ req }: HttpContext): JobId {
  const jobId = parseJobId(req.param('job') ?? '');
  if (jobId === undefined) throw new JobtailError('usage', 'expected a job id: a whole number from 1 to 2^63 - 1');
  return jobId;
}

/** A value such as `true` must not silently mean no. */
function isSet(req: HttpContext['req'], name: 'all' | 'complete' | 'now'): boolean {
  const value = req.query(name) ?? '0';
  if (value === '0' || value === '1') return value === '1';
  throw new JobtailError('usage', `${name}: 1 or 0 was expected`);
}

function secondsOf({ req }: HttpContext): number {
  const text = req.query('seconds') ?? String(USUAL_WAIT_SECONDS);
  if (/^\d{1,4}$/.test(text) && Number(text) <= MAX_WAIT_SECONDS) return Number(text);
  throw new JobtailError('usage', `seconds: a whole number from 0 to ${MAX_WAIT_SECONDS} was expected`);
}

async function bodyOf({ env }: HttpContext): Promise<unknown> {
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
function eventStream(parts: ApiParts, context: HttpContext): Response {
  const lines = newsLines(parts.feed.reader(), signalOf(context));
  return streamed(parts, context, lines, { headers: { 'content-type': 'application/x-ndjson' }, end: () => {} });
}

/** Fires when the client is gone. */
function signalOf({ env }: HttpContext): AbortSignal {
  const over = new AbortController();
  env.outgoing.once('close', () => over.abort());
  return over.signal;
}
