/** How a person gets in: a listener that proves to be the view, a ticket that works once, a session that ends with the token. */
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findView, linkTo } from '../../src/view/link.ts';
import { openTicket, TICKET_MS, ticketFor, tokenFileOf } from '../../src/view/token.ts';
import { freePort } from '../support/free-port.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { STDOUT, ViewPlace } from '../support/view-place.ts';

const LINES = `/api/lines?${STDOUT}`;
const NO_TOKEN = { authorization: undefined };

async function placeWithJob(settings: Parameters<typeof ViewPlace.serve>[0] = {}): Promise<ViewPlace> {
  const place = await ViewPlace.serve(settings);
  place.addJob();
  place.write('stdout', 'of the job\n');
  return place;
}

/** Follows a link as a browser does; the cookie that came with it. */
async function enter(place: ViewPlace, link: string, headers: Record<string, string> = {}) {
  const {
    status,
    headers: came,
    text,
  } = await place.ask(`/${new URL(link).search}`, { headers: { ...NO_TOKEN, ...headers } });
  const [whole = ''] = came['set-cookie'] ?? [];
  return { status, text, whole, cookie: whole.split(';')[0] ?? '' };
}

const ask = (place: ViewPlace, cookie: string, target = LINES) =>
  place.ask(target, { headers: { ...NO_TOKEN, cookie } });

async function listening(server: net.Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const at = (port: number) => ({ host: '127.0.0.1', port });

describe('a link', () => {
  it('opens the view once: the cookie is a session of its own', async () => {
    const place = await placeWithJob();
    const link = place.view.link();
    const entered = await enter(place, link);
    expect(entered).toMatchObject({ status: 200, text: expect.stringContaining('url=./"') });
    expect(entered.whole).toMatch(
      /^jobtail-view-[0-9]+=[A-Za-z0-9_-]{43}\.[A-Za-z0-9_-]{43}; HttpOnly; SameSite=Strict$/,
    );
    expect(entered.cookie).not.toContain(place.token);
    expect((await ask(place, entered.cookie)).text).toBe('of the job\n');
    expect((await ask(place, entered.cookie, '/')).headers['content-type']).toBe('text/html; charset=utf-8');
    const again = await enter(place, link);
    expect({ status: again.status, cookie: again.cookie }).toEqual({ status: 401, cookie: '' });
    expect(again.text).toContain('This link is not valid any more');
    expect((await place.ask('/', { headers: NO_TOKEN })).text).toContain('This browser has no session');
    // A tab that is opened again with its first address is let in by its session, and gets no other one.
    const reopened = await enter(place, link, { cookie: entered.cookie });
    expect({ status: reopened.status, cookie: reopened.cookie }).toEqual({ status: 200, cookie: '' });
    const other = await enter(place, place.view.link());
    expect(other.cookie).not.toBe(entered.cookie);
    expect((await ask(place, `${other.cookie}x; ${entered.cookie}; other=1`)).status, 'beside others').toBe(200);
  });

  it('opens nothing after a minute, before its time, by another token or at another start', () => {
    const ticket = ticketFor('token', 'start', 1_000_000);
    expect(openTicket('token', 'start', ticket, 1_000_000 + TICKET_MS - 1)).toBeDefined();
    expect(openTicket('token', 'start', ticket, 1_000_000 + TICKET_MS)).toBeUndefined();
    expect(openTicket('token', 'start', ticket, 999_000)).toBeUndefined();
    expect(openTicket('other', 'start', ticket, 1_000_001)).toBeUndefined();
    expect(openTicket('token', 'other', ticket, 1_000_001)).toBeUndefined();
    const [until = '', nonce, seal] = ticket.split('.');
    expect(openTicket('token', 'start', `${Number(until) + 1}.${nonce}.${seal}`, 1_000_002)).toBeUndefined();
    for (const wrong of ['', '..', ticket.slice(0, -1), `${ticket}A`])
      expect(openTicket('token', 'start', wrong, 1_000_001), wrong).toBeUndefined();
  });

  it('ends with the start of the server; its session goes on until there is another token', async () => {
    const place = await placeWithJob();
    const { cookie } = await enter(place, place.view.link());
    const unused = place.view.link();
    const { port } = place.view;
    const startAgain = async () => {
      await place.view.close();
      Object.assign(place.settings, { listen: at(port) });
      await place.start();
    };
    await startAgain();
    expect((await ask(place, cookie)).status).toBe(200);
    expect((await enter(place, unused)).status).toBe(401);
    expect((await enter(place, place.view.link())).status).toBe(200);
    const [name = '', session = ''] = cookie.split('=');
    const [number = '', seal = ''] = session.split('.');
    const changed = (text: string) => `${text.startsWith('x') ? 'y' : 'x'}${text.slice(1)}`;
    for (const wrong of [number, `${number}.`, `${changed(number)}.${seal}`, `${number}.${changed(seal)}`, `.${seal}`])
      expect((await ask(place, `${name}=${wrong}`)).status, wrong).toBe(401);
    fs.rmSync(tokenFileOf(place.settings));
    await startAgain();
    expect((await ask(place, cookie)).status).toBe(401);
  });

  it.each([
    ['https://gateway.example.org/jobs/', {}, true],
    ['http://gateway.example.org/jobs/', {}, false],
    ['http://gateway.example.org/jobs/', { 'x-forwarded-proto': 'https' }, true],
    [null, { 'x-forwarded-proto': 'https' }, true],
    [null, {}, false],
  ])('behind %s with %j makes a cookie for TLS alone: %s', async (publicUrl, headers, isSecure) => {
    const place = await placeWithJob({ publicUrl });
    const { whole } = await enter(place, place.view.link(), headers as Record<string, string>);
    expect(whole.endsWith('; SameSite=Strict; Secure')).toBe(isSecure);
  });
});

describe('what listens where the view should be', () => {
  it('is the view if it proves that it has the token', async () => {
    const place = await placeWithJob();
    const found = await findView(at(place.view.port), place.token);
    if (found.kind !== 'view') throw new Error(found.kind);
    const { cookie } = await enter(
      place,
      linkTo(found.start, place.token, { listen: at(place.view.port), publicUrl: null }),
    );
    expect((await ask(place, cookie)).status).toBe(200);
  });

  it('is nothing where no process listens', async () => {
    expect(await findView(at(await freePort()), 'token')).toEqual({ kind: 'nothing' });
    expect(await findView({ path: '/nowhere/view.sock' }, 'token')).toEqual({ kind: 'nothing' });
  });

  it('is another process if it answers as a view without the token, or with another one, or too much', async () => {
    const answers = [
      (response: http.ServerResponse) => response.writeHead(401).end('{}'),
      (response: http.ServerResponse) => response.end('{"start":"a","proof":"b"}'),
      (response: http.ServerResponse) => response.end(`{"start":"${'a'.repeat(100_000)}","proof":""}`),
      (response: http.ServerResponse) => response.end('{"start":1}'),
      (response: http.ServerResponse) => response.destroy(),
    ];
    for (const answer of answers) {
      const port = await listening(http.createServer((_, response) => void answer(response)));
      expect(await findView(at(port), 'token'), String(answer)).toEqual({ kind: 'unproven' });
    }
    const place = await placeWithJob();
    expect(await findView(at(place.view.port), `${place.token}x`)).toEqual({ kind: 'unproven' });
    expect(await findView(at(place.view.port), undefined)).toEqual({ kind: 'unproven' });
  });

  it('is another process if it passes the challenge on to the view', async () => {
    const place = await placeWithJob();
    const relay = net.createServer((socket) => {
      const on = net.connect(place.view.port, '127.0.0.1');
      for (const each of [socket, on]) each.on('error', () => {});
      socket.pipe(on).pipe(socket);
    });
    const port = await listening(relay);
    expect(await findView(at(port), place.token)).toMatchObject({ kind: 'unproven' });
  });

  it('answers a challenge to any caller, and only a whole one', async () => {
    const place = await placeWithJob();
    const hello = (nonce: string) => place.ask(`/api/hello?nonce=${nonce}`, { headers: NO_TOKEN });
    const { status, text } = await hello('n'.repeat(43));
    expect(status).toBe(200);
    expect(text).not.toContain(place.token);
    for (const wrong of ['', 'short', 'a'.repeat(200), `${'a'.repeat(30)}%0aticket`])
      expect((await hello(wrong)).status, wrong).toBe(400);
  });
});

describe('a Unix socket', () => {
  const placeOf = () => path.join(temporaryDirectory(), 'view.sock');
  const askAt = (file: string, target: string, headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      http
        .get({ socketPath: file, path: target, headers, agent: false }, (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        })
        .on('error', reject);
    });

  it('is opened by its owner alone, and proves to be the view', async () => {
    const file = placeOf();
    const place = await placeWithJob({ listen: { path: file } });
    expect(fs.statSync(file).mode & 0o777).toBe(0o600);
    expect(fs.readdirSync(path.dirname(file)), 'nothing is left of how it was made').toEqual(['view.sock']);
    expect(await findView({ path: file }, place.token)).toMatchObject({ kind: 'view' });
    expect(await askAt(file, LINES, { authorization: `Bearer ${place.token}` })).toBe(200);
    expect(await askAt(file, LINES, {})).toBe(401);
    expect(place.view.link()).toMatch(/^http:\/\/127\.0\.0\.1:9470\/\?ticket=/);
    expect(await askAt(file, `/${new URL(place.view.link()).search}`, {})).toBe(200);
    await place.view.close();
    expect(fs.existsSync(file)).toBe(false);
  });

  it('that a killed process left is replaced, and nothing else is', async () => {
    const file = placeOf();
    const first = await placeWithJob({ listen: { path: file } });
    await expect(ViewPlace.serve({ listen: { path: file } })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    expect(await findView({ path: file }, first.token)).toMatchObject({ kind: 'view' });
    await first.view.close();
    // As a kill leaves it: the name, and nothing that listens.
    const other = net.createServer().listen(`${file}.2`);
    await once(other, 'listening');
    fs.linkSync(`${file}.2`, file);
    other.close();
    await once(other, 'close');
    await placeWithJob({ listen: { path: file } });
    const taken = placeOf();
    fs.writeFileSync(taken, 'of a person');
    await expect(ViewPlace.serve({ listen: { path: taken } })).rejects.toThrow('is not a socket');
    expect(fs.readFileSync(taken, 'utf8')).toBe('of a person');
  });
});
