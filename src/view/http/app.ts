/** The addresses of the view, and who may ask for them. */
import { type Context, Hono } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import { asJobtailError } from '../../errors.ts';
import type { Refusal } from '../contract/addresses.ts';
import type { ViewParts } from '../parts.ts';
import { Refused } from '../refused.ts';
import { cookieName, HEADERS, isOwnHost, isOwnOrigin, type Origins } from './access.ts';
import type { ViewApp } from './answers.ts';
import { addContents } from './content-routes.ts';
import { addEvents } from './event-routes.ts';
import type { PageFiles } from './page-files.ts';
import { addResults } from './result-routes.ts';
import { tokenCheck } from './token.ts';

export interface AppOptions {
  readonly parts: ViewParts;
  readonly token: string;
  /** The port that it listens at. */
  readonly port: () => number;
  readonly page: PageFiles;
}

export function appOf(options: AppOptions): ViewApp {
  const { parts, token, port, page } = options;
  const isToken = tokenCheck(token);
  const { settings, onFailure } = parts;
  const app: ViewApp = new Hono();

  app.use(async (context, next) => {
    await next();
    for (const [name, value] of Object.entries(HEADERS))
      if (!context.res.headers.has(name)) context.res.headers.set(name, value);
  });
  app.use(async (context, next) => {
    const { req } = context;
    const isPage = new URL(req.url).pathname === '/';
    requireOwn(context, settings, isPage);
    if (isPage && req.query('token') !== undefined)
      return isToken(req.query('token')) ? enter(context, options) : context.html(NO_TOKEN, 401);
    const shown = getCookie(context, cookieName(port())) ?? bearerIn(req.header('authorization'));
    if (isToken(shown)) return next();
    return isPage ? context.html(NO_TOKEN, 401) : refused(context, 401, NO_TOKEN_REFUSAL);
  });

  app.get('/', (context) => pageFile(context, page, 'index.html'));
  app.get('/assets/:name', (context) => pageFile(context, page, `assets/${context.req.param('name')}`));
  addEvents(app, parts);
  addContents(app, parts);
  addResults(app, parts);
  app.notFound((context) => refused(context, 404, { code: 'not-there', message: 'there is nothing at this address' }));
  app.onError((error, context) => {
    if (error instanceof Refused) return refused(context, error.status, error.refusal);
    const { code, message, hint } = asJobtailError(error);
    // What the store says is told by its streams, too.
    if (code === 'internal') onFailure(error);
    return refused(context, code === 'internal' ? 500 : 503, {
      code,
      message,
      ...(hint === undefined ? {} : { hint }),
    });
  });
  return app;
}

/** @throws Refused if it is no request of a page of this server, or of a person or a program without a page */
function requireOwn({ req }: Context, origins: Origins, isPage: boolean): void {
  const host = req.header('host');
  if (req.method !== 'GET') throw new Refused(405, 'only GET');
  if (!isOwnHost(host, origins)) throw new Refused(403, 'this is not the name of this server', { hint: HOST_HINT });
  // A link may lead to the page from anywhere.
  const site = isPage ? 'none' : (req.header('sec-fetch-site') ?? 'none');
  if (!isOwnOrigin(req.header('origin'), host, origins) || (site !== 'same-origin' && site !== 'none'))
    throw new Refused(403, 'this is a request of the page of somebody else');
}

const HOST_HINT = 'use the address that agent view prints; behind a proxy, set view.publicUrl';
const NO_TOKEN_REFUSAL: Refusal = {
  code: 'no-token',
  message: 'this browser has not shown the token',
  hint: 'open the link that agent view prints',
};
const document = (head: string, body: string) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>jobtail</title>${head}</head><body>${body}</body></html>\n`;
const NO_TOKEN = document('', '<p>Open the link that <code>agent view</code> prints.</p>');
/**
 * Not a redirect: a browser that came from elsewhere, as from a message with the link, would not send the new cookie with
 * the request that follows one.
 */
const ENTERED = document('<meta http-equiv="refresh" content="0; url=./">', '<p><a href="./">The view</a></p>');

/** The link with the token: the cookie is made, and the token goes from the address. */
function enter(context: Context, { token, port }: AppOptions): Response {
  const secure = context.req.header('x-forwarded-proto') === 'https';
  // Without a path it is for where the page is, whatever a proxy puts before it.
  setCookie(context, cookieName(port()), token, {
    httpOnly: true,
    sameSite: 'Strict',
    secure,
    path: '',
  });
  context.header('cache-control', 'no-store');
  return context.html(ENTERED) as Response;
}

function bearerIn(header: string | undefined): string | undefined {
  return /^Bearer ([A-Za-z0-9_-]+)$/.exec(header ?? '')?.[1];
}

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
