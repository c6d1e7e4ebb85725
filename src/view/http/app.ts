/** The addresses of the view. */
import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { type Context, Hono } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import { asJobtailError } from '../../errors.ts';
import { parseJobId } from '../../job.ts';
import type { Refusal } from '../contract/addresses.ts';
import type { ViewParts } from '../parts.ts';
import type { Proofs } from '../proof.ts';
import { Refused } from '../refused.ts';
import type { Routes, ViewApp } from './answers.ts';
import { contentRoutes } from './content-routes.ts';
import { eventRoutes } from './event-routes.ts';
import { findRoutes } from './find-routes.ts';
import { addGate, entryRoutes } from './gate.ts';
import { resultRoutes } from './result-routes.ts';
import type { Connections } from './server.ts';

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
  readonly page: PageFiles;
  readonly proofs: Proofs;
  readonly connections: Connections;
}

export function appOf(parts: ViewParts, { page, proofs, connections }: AppOptions): ViewApp {
  const app: ViewApp = new Hono();

  app.use(secureHeaders(HEADERS));
  addGate(app, proofs, connections);

  app.use('/api/*', async ({ req }, next) => {
    const isOfResults = req.path.endsWith('/api/results') || req.query('result') !== undefined;
    await parts.stores.ready(isOfResults ? parseJobId(req.query('job') ?? '') : undefined);
    await next();
  });

  app.get('/', (context) => pageFile(context, page, 'index.html'));
  app.get('/assets/:name', (context) => pageFile(context, page, `assets/${context.req.param('name')}`));
  const { listen } = parts.settings;
  const routes = {
    ...entryRoutes(proofs, 'path' in listen ? listen.path : undefined),
    ...apiRoutes(parts),
  };
  for (const [name, answer] of Object.entries(routes)) app.get(`/api/${name}`, answer);
  app.notFound((context) => refused(context, 404, { message: 'there is nothing at this address' }));
  app.onError((error, context) => {
    if (error instanceof Refused) return refused(context, error.status, error.refusal);
    const { code, message, hint } = asJobtailError(error);
    // The streams report errors of the store, too.
    if (code === 'internal') parts.onFailure(error);
    return refused(context, code === 'internal' ? 500 : 503, {
      message,
      ...(hint === undefined ? {} : { hint }),
    });
  });
  return app;
}

/** All routes for data of jobs, behind the gate. */
const apiRoutes = (parts: ViewParts): Routes => ({
  ...eventRoutes(parts),
  ...contentRoutes(parts),
  ...resultRoutes(parts),
  ...findRoutes(parts),
});

function refused(context: Context, status: number, refusal: Refusal): Response {
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    ...(status === 429 ? { 'retry-after': '1' } : {}),
  };
  return context.body(JSON.stringify(refusal), { status: status as 400, headers });
}

function pageFile(context: Context, page: PageFiles, name: string): Response {
  const file = page.get(name);
  if (file === undefined) throw new Refused(404, 'there is nothing at this address');
  const isPacked = /\bgzip\b/.test(context.req.header('accept-encoding') ?? '');
  const headers = {
    'content-type': file.type,
    'cache-control': name === 'index.html' ? 'no-store' : 'private, max-age=31536000, immutable',
    vary: 'accept-encoding',
    ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
  };
  return context.body(new Uint8Array(isPacked ? file.packed : file.bytes), { headers });
}

interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly packed: Buffer;
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export type PageFiles = ReadonlyMap<string, PageFile>;

/** The files of the page, read once and handed out by name. Nothing else of the disk can be named. */
export function pageFilesIn(directory: string): PageFiles {
  const files = new Map<string, PageFile>();
  for (const name of fs.readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const type = TYPES[path.extname(name)];
    const file = path.join(directory, name);
    if (type === undefined || !fs.statSync(file).isFile()) continue;
    const bytes = fs.readFileSync(file);
    files.set(name, { type, bytes, packed: gzipSync(bytes) });
  }
  return files;
}
