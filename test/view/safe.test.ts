/** Who may ask, and for what: the token, Host and Origin, paths, links, names that would act, limits. */
import fs from 'node:fs';
import type http from 'node:http';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Connections } from '../../src/http/server.ts';
import { resultsParts } from '../../src/safe-names.ts';
import type { Generations, ResultEntries } from '../../src/view/contract/addresses.ts';
import { until } from '../support/e2e-until.ts';
import { JOB, STDOUT, ViewPlace } from '../support/view-place.ts';

const LINES = `/api/lines?${STDOUT}`;
const ADDRESSES = [
  '/api/events',
  LINES,
  `/api/generations?${STDOUT}`,
  `/api/place?${STDOUT}&line=1`,
  `/api/search?${STDOUT}&text=a`,
  `/api/numbers?${STDOUT}&like=0`,
  `/api/raw?${STDOUT}`,
  `/api/preview?${STDOUT}`,
  '/api/results?job=501',
  '/api/session',
  `/api/pass?to=raw?${STDOUT}`,
  '/api/nowhere',
];

/** What a descriptor of this process is open for. */
function linkOf(descriptor: string): string {
  try {
    return fs.readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return '';
  }
}

async function placeWithSecret(): Promise<ViewPlace> {
  const place = await ViewPlace.withJob('of the job\n');
  fs.writeFileSync(path.join(place.directory, 'secret'), 'SECRET');
  return place;
}

describe('the token', () => {
  it('is wanted for everything', async () => {
    const place = await placeWithSecret();
    const wrong = `${place.token.slice(0, -1)}${place.token.endsWith('A') ? 'B' : 'A'}`;
    const without = [
      { authorization: undefined },
      { authorization: `Bearer ${wrong}` },
      { authorization: `Basic ${place.token}` },
      // A browser sends a cookie to every server of this host.
      { authorization: undefined, cookie: `jobtail=${place.token}` },
    ];
    // Connections that showed no session end before those that did (test/http/server.test.ts).
    const idleMs: number[] = [];
    const admitted = vi.spyOn(Connections.prototype, 'admit').mockImplementation((socket) => {
      idleMs.push((socket as unknown as { readonly server: http.Server }).server.timeout);
    });
    onTestFinished(() => admitted.mockRestore());
    for (const address of ADDRESSES) {
      for (const headers of without) {
        const { status, text } = await place.ask(address, { headers });
        expect(status, address).toBe(401);
        expect(text).not.toContain('of the job');
      }
    }
    expect(idleMs).toEqual([]);
    await place.ask(LINES);
    // A reader that takes nothing for a minute gives back its place and its files (test/http/streams.test.ts).
    expect(idleMs).toEqual([60_000]);
  });

  it('is in a private file, and in no link', async () => {
    const place = await placeWithSecret();
    const file = path.join(place.settings.stateDirectory, 'view-token');
    expect(fs.statSync(file).mode & 0o777).toBe(0o600);
    expect(fs.readdirSync('/proc/self/fd').filter((each) => linkOf(each) === fs.realpathSync(file))).toEqual([]);
    expect(place.token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(place.view.link()).not.toContain(place.token);
    expect((await place.ask(`${LINES}&token=${place.token}`, { headers: { authorization: undefined } })).status).toBe(
      401,
    );
  });

  it.each([
    ['others may read it', (file: string) => fs.chmodSync(file, 0o644)],
    ['it is short', (file: string) => fs.writeFileSync(file, 'short')],
    [
      'it is a link',
      (file: string) => {
        fs.renameSync(file, `${file}.1`);
        fs.symlinkSync(`${file}.1`, file);
      },
    ],
    [
      'it is a directory',
      (file: string) => {
        fs.rmSync(file);
        fs.mkdirSync(file);
      },
    ],
  ])('is refused if %s', async (_, spoil) => {
    const place = await placeWithSecret();
    await place.view.close();
    spoil(path.join(place.settings.stateDirectory, 'view-token'));
    await expect(place.start()).rejects.toMatchObject({ hint: expect.any(String) });
    fs.rmSync(path.join(place.settings.stateDirectory, 'view-token'), { recursive: true });
    await place.start();
  });
});

describe('a request', () => {
  it('for a file of the page gets the same bytes, packed or not', async () => {
    const place = await placeWithSecret();
    const [asset = ''] = /assets\/[\w.-]+/.exec((await place.ask('/')).text) ?? [];
    const plain = await place.ask(`/${asset}`);
    for (const time of ['first', 'second']) {
      const packed = await place.ask(`/${asset}`, { headers: { 'accept-encoding': 'gzip, br' } });
      expect(gunzipSync(packed.body), time).toEqual(plain.body);
    }
  });

  it('by HEAD gets the page alone: monitors ask so whether it is up', async () => {
    const place = await placeWithSecret();
    const statuses = ['/', LINES].map(async (each) => (await place.ask(each, { method: 'HEAD' })).status);
    expect(await Promise.all(statuses)).toEqual([200, 405]);
  });
});

describe('a path', () => {
  const up = [
    '..%2f..%2fsecret',
    '..%2f',
    '%2e%2e/secret',
    '....//secret',
    '..\\secret',
    '%252e%252e%252fsecret',
    'a%00b',
    '%c0%ae%c0%ae/secret',
  ];

  it('that leads up leads nowhere', async () => {
    const place = await placeWithSecret();
    const addresses = up.flatMap((text) => [
      `/api/lines?job=501&task=9001&file=${text}`,
      `/api/lines?job=${text}&task=9001&file=stdout`,
      `/api/lines?job=501&task=${text}&file=stdout`,
      `/api/lines?job=501&result=${text}`,
      `/api/raw?job=501&result=/${text}`,
      `/api/lines?${STDOUT}&version=${text}`,
      `/api/results?job=501&under=${text}/`,
      `/assets/${text}`,
      `/${text}`,
      `/assets/../${text}`,
    ]);
    for (const address of addresses) {
      const { status, text: said } = await place.ask(address);
      expect(said, address).not.toContain('SECRET');
      if (!address.startsWith('/api/results')) expect([400, 404, 409], address).toContain(status);
    }
    expect(place.failures).toEqual([]);
  });

  it('that the ledger holds is taken apart anew, whatever the agent thought of it', async () => {
    const place = await placeWithSecret();
    for (const name of ['../../../secret', '/a/../../../../secret', '..']) {
      place.addResult(name, undefined, { state: 'synced' });
      const { status } = await place.ask(`/api/lines?job=501&result=${encodeURIComponent(name)}`);
      expect(status, name).toBe(404);
    }
  });

  it('over a link is not followed: of a mirror, a former one, a result, a directory', async () => {
    const place = await placeWithSecret();
    const secret = path.join(place.directory, 'secret');
    const results = path.join(place.mirrors, ...resultsParts(JOB));
    place.addResult('link', 'x');
    place.addResult('directory/secret', 'x');
    fs.rmSync(path.join(results, 'link'));
    fs.symlinkSync(secret, path.join(results, 'link'));
    fs.rmSync(path.join(results, 'directory'), { recursive: true });
    fs.symlinkSync(place.directory, path.join(results, 'directory'));
    fs.symlinkSync(secret, `${place.mirrorOf()}.1`);
    fs.rmSync(place.mirrorOf('log'));
    fs.symlinkSync(secret, place.mirrorOf('log'));
    for (const query of ['result=link', 'result=directory/secret', 'task=9001&file=log'])
      for (const route of ['lines', 'raw', 'preview', 'search?text=a&x=1'])
        expect((await place.ask(`/api/${route}${route.includes('?') ? '&' : '?'}job=501&${query}`)).status, query).toBe(
          404,
        );
    expect(JSON.parse((await place.ask(`/api/generations?${STDOUT}`)).text)).toEqual({
      now: 'g1',
      former: [],
      began: [],
    });
    // A directory of the mirrors themselves.
    const task = path.dirname(place.mirrorOf());
    fs.renameSync(task, `${task}.away`);
    fs.symlinkSync(`${task}.away`, task);
    expect((await place.ask(LINES)).status).toBe(404);
  });
});

describe('names that would act', () => {
  const names = [
    '<img src=x onerror=alert(1)>.txt',
    'javascript:alert(1)',
    'a"b\'c`.html',
    'line\nfeed',
    '\u202egnp.exe',
    'x\r\nset-cookie: a=b',
  ];

  it('stay text in every answer and every header', async () => {
    const place = await placeWithSecret();
    for (const name of names) place.addResult(name, name.includes('\r') ? undefined : `<script>${name}</script>`);
    const { entries } = await place.json<ResultEntries>('/api/results?job=501');
    expect(entries.map(({ name }) => name).sort()).toEqual([...names].sort());
    for (const name of names.filter((each) => !each.includes('\r'))) {
      const answer = await place.ask(`/api/raw?job=501&result=${encodeURIComponent(name)}`);
      expect(answer.text).toBe(`<script>${name}</script>`);
      expect(answer.headers['content-type']).toBe('application/octet-stream');
      const disposition = answer.headers['content-disposition'] ?? '';
      expect(disposition).toMatch(/^attachment; filename="[ !#-[\]-~]*"; filename\*=UTF-8''[A-Za-z0-9._~!%*&+-]*$/);
      expect(decodeURIComponent(disposition.split("''")[1] ?? ''), 'nothing that turns or breaks text').not.toMatch(
        /[\p{Cc}\p{Cf}]/u,
      );
    }
    const page = place.look(`job=${JOB}`);
    place.commit('log', { error: { code: 'timeout', message: 'a\n\nevent: hello\ndata: {}', hint: null, since: 1 } });
    const { firstError } = await page.until('job', (job) => job.firstError !== null);
    expect(firstError?.message).toBe('a\n\nevent: hello\ndata: {}');
    expect(page.all('hello')).toHaveLength(1);
  });
});

describe('too much', () => {
  it('in one window is cut, and a byte beyond the end is the end', async () => {
    const place = await placeWithSecret();
    place.write('stdout', Buffer.alloc(4 * 1024 * 1024, 'x'));
    const huge = await place.ask(`${LINES}&at=0&bytes=9007199254740991`);
    expect(huge.body.length).toBe(1024 * 1024);
    expect((await place.ask(`${LINES}&at=9007199254740991`)).body.length).toBe(0);
  });

  it('in the head of a request is refused', async () => {
    const place = await placeWithSecret();
    expect((await place.ask(`${LINES}&${'x'.repeat(20_000)}`)).status).toBe(431);
  });

  it('at a time is counted until its response has ended, whatever it is, and leaves nothing open', async () => {
    const place = await placeWithSecret();
    place.rewrite('stdout', 'of the job\n');
    place.addResult('/a', 'content');
    const missing = STDOUT.replace('stdout', 'stderr');
    const { former } = await place.json<Generations>(`/api/generations?${STDOUT}`);
    const addresses = [
      ...[LINES, ...ADDRESSES.slice(2)].flatMap((each) => [each, each.replace(STDOUT, missing)]),
      ...['/api/errors', '/api/find?text=a', '/api/find?text=%5B&regex=1', '/api/lines?job=501'],
      ...['&regex=1', '&errors=1'].map((more) => `/api/search?${STDOUT}&text=a${more}`),
      ...['f1-1', 'g7', former[0]?.version].map((version) => `${LINES}&version=${version}`),
      ...['', '&version=r1-1'].map((more) => `/api/lines?job=501&result=%2Fa${more}`),
    ];
    const left = () => ({
      files: fs.readdirSync('/proc/self/fd').filter((each) => linkOf(each).startsWith(place.mirrors)).length,
      threads: fs.readdirSync('/proc/self/task').length,
      timers: process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length,
    });
    // The threads for files stay.
    await fs.promises.stat(place.mirrors);
    const before = left();
    for (const address of addresses) await place.ask(address);
    expect(left().files).toBe(before.files);
    await until(
      'the end of all threads and timers',
      () => left().threads <= before.threads && left().timers <= before.timers,
    );
    const { limits } = place.view.parts;
    // The line has no numbers: 400.
    const routes = [LINES, `/api/raw?${STDOUT}`, `/api/search?${STDOUT}&text=a`, `/api/numbers?${STDOUT}&like=0`];
    for (const [kind, count, ...statuses] of [
      ['windows', 32, 429, 200, 200, 400],
      ['downloads', 16, 200, 429, 200, 400],
      ['searches', 8, 200, 200, 429, 429],
    ] as const) {
      const places = Array.from({ length: count }, () => limits.take(kind));
      const found: number[] = [];
      for (const address of routes) found.push((await place.ask(address)).status);
      expect(found, kind).toEqual(statuses);
      for (const leave of places) leave();
    }
  });
});
