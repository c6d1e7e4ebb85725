/** How a person gets in: a listener that proves to be the view, a ticket that works once, a session that its page alone goes on with. */
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import type { JobId } from '../../src/job.ts';
import type { PageSession, Refusal } from '../../src/view/contract/addresses.ts';
import { findView, linkTo } from '../../src/view/link.ts';
import { openTicket, TICKET_MS, ticketFor } from '../../src/view/proof.ts';
import { serveView } from '../../src/view/serve.ts';
import type { ViewSettings } from '../../src/view/settings.ts';
import { until } from '../support/e2e-until.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { STDOUT, ViewPlace } from '../support/view-place.ts';

const LINES = `/api/lines?${STDOUT}`;
const NO_TOKEN = { authorization: undefined };

const placeWithJob = (settings: Partial<ViewSettings> = {}) => ViewPlace.withJob('of the job\n', settings);

/** Follows a link as its page does: what it gets for the ticket. */
async function enter(place: ViewPlace, link: string) {
  const ticket = new URL(link).searchParams.get('ticket');
  const { status, text } = await place.ask('/api/session', { headers: { authorization: `Ticket ${ticket}` } });
  const { access = '', key = '', error } = JSON.parse(text) as Partial<PageSession & Refusal>;
  return { status, access, key, message: error?.message ?? '' };
}

const ask = (place: ViewPlace, access: string, target = LINES) =>
  place.ask(target, { headers: { authorization: `Bearer ${access}` } });

async function listening(server: net.Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const at = (port: number) => ({ host: '127.0.0.1', port });

it('is there below the path of publicUrl, whether a proxy keeps that path or takes it away', async () => {
  const place = await placeWithJob({ publicUrl: 'https://gateway.example.org/node/host/9470/' });
  for (const before of ['', '/node/host/9470']) {
    expect((await place.ask(`${before}/`)).text).toContain('<!doctype html>');
    expect((await place.ask(`${before}${LINES}`)).status).toBe(200);
    expect((await place.ask(`${before}${LINES}`, { headers: NO_TOKEN })).status).toBe(401);
  }
  expect((await place.ask('/node/other/9470/')).status).toBe(404);
  expect(place.view.link()).toMatch(/^https:\/\/gateway\.example\.org\/node\/host\/9470\/\?ticket=[A-Za-z0-9._-]+$/);
});

it('a link opens nothing after a minute, before its time, by another token or at another start', () => {
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

describe('what listens where the view should be', () => {
  it('is the view if it proves that it has the token', async () => {
    const place = await placeWithJob();
    const found = await findView(at(place.view.port), place.token);
    if (found.kind !== 'view') throw new Error(found.kind);
    const link = linkTo(found.start, place.token, { listen: at(place.view.port), publicUrl: null });
    expect((await ask(place, (await enter(place, link)).access)).status).toBe(200);
  });

  it('is the view while its fleet does not answer, which no entry waits for', async () => {
    const { settings, token } = await placeWithJob();
    let giveUp = () => {};
    const read = (_: readonly JobId[]) =>
      new Promise<never>((_, reject) => (giveUp = () => reject(new Error('connection refused'))));
    const fleet = { read: vi.fn(read), close: async () => {} };
    const onFailure = () => {};
    const view = await serveView({ settings: { ...settings, listen: at(0) }, fleet, figures: null, onFailure });
    onTestFinished(async () => {
      giveUp();
      await view.close();
    });
    expect(await findView(at(view.port), token)).toMatchObject({ kind: 'view' });
    const headers = { authorization: `Bearer ${token}` };
    const askHere = (to: string) => fetch(`http://127.0.0.1:${view.port}/api/${to}`, { headers });
    for (const to of ['session', `pass?to=${encodeURIComponent('raw?x')}`]) await askHere(to);
    expect(fleet.read).not.toHaveBeenCalled();
    const results = askHere('results?job=999');
    await until('the read that it waits for', () => fleet.read.mock.calls.length > 0);
    expect(fleet.read.mock.calls).toEqual([[['999']]]);
    giveUp();
    expect((await results).status, 'none are not known').toBe(503);
  });

  it('is nothing where no process listens, or one that is too busy to answer', async () => {
    expect(await findView(at(await freePort()), 'token')).toEqual({ kind: 'nothing' });
    expect(await findView({ path: '/nowhere/view.sock' }, 'token')).toEqual({ kind: 'nothing' });
    const busy = await listening(http.createServer(() => {}));
    expect(await findView(at(busy), 'token')).toEqual({ kind: 'nothing' });
    // No way leads there: neither is an alarm of another process.
    for (const host of ['255.255.255.255', '2001:db8::1'])
      expect(await findView({ host, port: 9470 }, 'token'), host).toEqual({ kind: 'nothing' });
  });

  it('is another process if it answers as a view without the token, or with another one, or too much', async () => {
    const answers = [
      (response: http.ServerResponse) => response.writeHead(401).end('{}'),
      (response: http.ServerResponse) => response.end('{"start":"a","proof":"b"}'),
      (response: http.ServerResponse) => response.end(`{"start":"${'a'.repeat(100_000)}","proof":""}`),
      (response: http.ServerResponse) => response.end('{"start":1}'),
      (response: http.ServerResponse) => response.end('<html>'),
      (response: http.ServerResponse) => response.destroy(),
    ];
    for (const answer of answers) {
      const server = http.createServer((_, response) => void answer(response));
      expect(await findView(at(await listening(server)), 'token'), String(answer)).toEqual({ kind: 'unproven' });
      const connections = () => new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
      await until('the end of the connection', async () => (await connections()) === 0);
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
});

it('a view closes what it reads of a fleet when it ends, and if it cannot listen', async () => {
  const { settings, view } = await ViewPlace.serve();
  const close = vi.fn(async () => {});
  const read = () => new Promise<never>(() => {});
  const serve = (listen: ViewSettings['listen']) =>
    serveView({ settings: { ...settings, listen }, fleet: { read, close }, figures: null, onFailure: () => {} });
  await expect(serve(at(view.port))).rejects.toMatchObject({ code: 'EADDRINUSE' });
  expect(close).toHaveBeenCalledTimes(1);
  await (await serve(at(0))).close();
  expect(close).toHaveBeenCalledTimes(2);
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
    const nowhere = { path: path.join(path.dirname(taken), 'missing', 'view.sock') };
    await expect(ViewPlace.serve({ listen: nowhere })).rejects.toMatchObject({ code: 'config' });
  });
});
