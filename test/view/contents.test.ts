/** Contents over real HTTP: bytes of the mirrors and results, lines, generations, searches, downloads. */
import fs from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { JobId, TaskId } from '../../src/job.ts';
import { FileContent } from '../../src/view/content/content.ts';
import type {
  Generations,
  LinePlace,
  NumbersLine,
  ResultEntries,
  SearchLine,
} from '../../src/view/contract/addresses.ts';
import { until } from '../support/e2e-until.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { type Answer, STDOUT, ViewPlace } from '../support/view-place.ts';

const TEXT = 'první řádek\r\n\u001b[31mred\u001b[0m\n<script>alert(1)</script>\n';

const numbersIn = ({ headers, body }: Answer) => ({
  start: Number(headers['view-start']),
  end: Number(headers['view-start']) + body.length,
  bytes: Number(headers['view-bytes']),
});

describe('the lines of a mirror', () => {
  it('are its bytes, window by window', async () => {
    const content = Buffer.concat([Buffer.from(TEXT.repeat(3_000)), Buffer.from([0xff, 0x00, 0xc3])]);
    const place = await ViewPlace.withJob(content);
    const windows: Buffer[] = [];
    for (let at = 0; at < content.length; ) {
      const answer = await place.ask(`/api/lines?${STDOUT}&version=g1&at=${at}&bytes=10000`);
      expect(answer.headers).toMatchObject({ 'content-type': 'application/octet-stream', 'view-version': 'g1' });
      const { start, end, bytes } = numbersIn(answer);
      expect({ start, bytes }).toEqual({ start: at, bytes: content.length });
      windows.push(answer.body);
      at = end;
    }
    expect(Buffer.concat(windows).equals(content)).toBe(true);
  });

  it('have numbers once they are counted, and each can be gone to', async () => {
    const place = await ViewPlace.withJob(TEXT.repeat(100_000));
    const before = await place.ask(`/api/lines?${STDOUT}&from=3000000`);
    expect(before.headers['view-line']).toBeUndefined();
    const found = await place.json<LinePlace>(`/api/place?${STDOUT}&line=123456`);
    expect(found.line).toBe(123_456);
    const at = await place.ask(`/api/lines?${STDOUT}&at=${found.byte}`);
    expect(at.headers['view-line']).toBe('123456');
    expect(await place.json<LinePlace>(`/api/place?${STDOUT}&byte=${found.byte + 3}`)).toEqual(found);
    const last = await place.json<LinePlace>(`/api/place?${STDOUT}&line=999999999`);
    expect(last).toEqual({
      ...{ version: 'g1', line: 300_000 },
      ...{ byte: Buffer.byteLength(TEXT) * 100_000, bytes: Buffer.byteLength(TEXT) * 100_000 },
    });
    // Those of another generation are counted anew.
    place.rewrite('stdout', 'x\n'.repeat(100_000));
    const lines = () => place.ask(`/api/lines?${STDOUT}&from=150000`);
    expect((await lines()).headers['view-line']).toBeUndefined();
    expect((await place.json<LinePlace>(`/api/place?${STDOUT}&byte=150000`)).line).toBe(75_000);
    expect((await lines()).headers['view-line']).toBe('75000');
  });

  it('of a generation that is over are refused, and so are later bytes under its name', async () => {
    const place = await ViewPlace.withJob('old\n'.repeat(100));
    expect((await place.ask(`/api/lines?${STDOUT}&version=g1`)).status).toBe(200);
    place.rewrite('stdout', 'new\n');
    const answer = await place.ask(`/api/lines?${STDOUT}&version=g1`);
    expect({ status: answer.status, refusal: JSON.parse(answer.text) }).toMatchObject({
      status: 409,
      refusal: { error: { version: 'g2' } },
    });
    expect((await place.ask(`/api/lines?${STDOUT}`)).text).toBe('new\n');
  });

  it('of former generations stay, whatever number they have by now', async () => {
    const place = await ViewPlace.withJob('first\n');
    place.rewrite('stdout', 'second\n');
    const [first] = (await place.json<Generations>(`/api/generations?${STDOUT}`)).former;
    place.rewrite('stdout', 'third\n');
    const mismatch = { kind: 'truncated', at: 0, reason: 'it ends at byte 0', generation: 3, seenAt: 1 } as const;
    place.commit('stdout', { mismatches: [mismatch] });
    const { now, former, began } = await place.json<Generations>(`/api/generations?${STDOUT}`);
    expect(now).toBe('g3');
    expect(former.map(({ generation, bytes }) => [generation, bytes])).toEqual([
      [2, 'second\n'.length],
      [1, (await place.ask(`/api/raw?${STDOUT}&version=${former[1]?.version}`)).body.length],
    ]);
    expect(began).toEqual([{ generation: 3, at: 0, reason: 'it ends at byte 0' }]);
    expect(former[1]?.version).toBe(first?.version);
    expect((await place.ask(`/api/lines?${STDOUT}&version=${first?.version}`)).text).toBe('first\n');
    expect((await place.ask(`/api/raw?${STDOUT}&version=${former[0]?.version}`)).text).toBe('second\n');
    // The youngest first, however many digits their numbers have.
    for (let number = 3; number <= 11; number++) fs.writeFileSync(`${place.mirrorOf()}.${number}`, 'x'.repeat(number));
    place.commit('stdout', { generation: 12 });
    const all = (await place.json<Generations>(`/api/generations?${STDOUT}`)).former;
    expect(all.map(({ generation }) => generation)).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    place.commit('stdout', { generation: 3 });
    fs.rmSync(`${place.mirrorOf()}.2`);
    expect((await place.ask(`/api/lines?${STDOUT}&version=${first?.version}`)).status).toBe(409);
  });
});

it('a content that is closed is not read, and closed once: its number may be that of another file', () => {
  const file = path.join(temporaryDirectory(), 'file');
  fs.writeFileSync(file, 'text');
  const content = new FileContent(fs.openSync(file, 'r'), 'g1', 'file');
  expect(content.read(0, 4).toString()).toBe('text');
  content.close();
  const other = fs.openSync(file, 'r');
  onTestFinished(() => fs.closeSync(other));
  expect(() => content.read(0, 4)).toThrow('read after it was closed');
  content.close();
  expect(fs.fstatSync(other).size).toBe(4);
});

describe('a search', () => {
  it('counts all, and says where', async () => {
    const place = await ViewPlace.withJob(`${'.'.repeat(99)}\n`.repeat(20_000) + 'ŽLUŤ\n'.repeat(3));
    const said = await place.lines<SearchLine>(`/api/search?${STDOUT}&text=${encodeURIComponent('žluť')}`);
    expect(said.flatMap((line) => ('at' in line ? line.at : []))).toEqual([
      [2_000_000, 6],
      [2_000_007, 6],
      [2_000_014, 6],
    ]);
    expect(said.at(-1)).toEqual({ done: true, count: 3, version: 'g1' });
  });

  it('goes on from a byte', async () => {
    const place = await ViewPlace.withJob('a needle, a needle and a needle\n'.repeat(2));
    const next = await place.lines<SearchLine>(`/api/search?${STDOUT}&text=needle&from=3&max=2`);
    expect(next[0]).toEqual({
      at: [
        [12, 6],
        [25, 6],
      ],
    });
  });

  it('for errors takes the lines that look like errors, by the patterns of the configuration', async () => {
    const content = 'no errors\nstep 1: Error: an error\nCUDA error 2';
    const errors = async (place: ViewPlace) =>
      (await place.lines<SearchLine>(`/api/search?${STDOUT}&errors=1`)).flatMap((line) =>
        'at' in line ? line.at : [],
      );
    expect(await errors(await ViewPlace.withJob(content))).toEqual([
      [18, 15],
      [39, 7],
    ]);
    const place = await ViewPlace.withJob(content, { errorPatterns: ['^cuda', '\\bstep\\b'] });
    expect(await errors(place)).toEqual([
      [10, 23],
      [34, 12],
    ]);
  });

  it('by an expression ends the thread of its expression', async () => {
    const place = await ViewPlace.withJob('a needle\n');
    const terminate = vi.spyOn(Worker.prototype, 'terminate');
    onTestFinished(() => terminate.mockRestore());
    const said = await place.lines<SearchLine>(`/api/search?${STDOUT}&text=n.*e&regex=1`);
    expect(said[0]).toEqual({ at: [[2, 6]] });
    await until('its end', () => terminate.mock.calls.length === 1);
  });

  it('that nobody reads any more ends, and gives its place back', async () => {
    const place = await ViewPlace.withJob(
      Buffer.concat([Buffer.alloc(16 * 1024 * 1024, 'abcdefg\n'), Buffer.from('last\n')]),
    );
    // More than there are places.
    for (let each = 0; each < 10; each++) {
      await new Promise<void>((resolve) => {
        const request = place.request(`/api/search?${STDOUT}&text=abc&case=1`, {}, (response) => {
          expect(response.statusCode).toBe(200);
          response.on('error', () => {});
          request.destroy();
          request.on('close', resolve);
        });
        request.on('error', () => resolve());
      });
    }
    const last = (await place.lines<SearchLine>(`/api/search?${STDOUT}&text=last`)).at(-1);
    expect(last).toMatchObject({ done: true, count: 1 });
    expect(place.failures).toEqual([]);
  });

  it('in a file that is rewritten meanwhile says so', async () => {
    const place = await ViewPlace.withJob(Buffer.alloc(64 * 1024 * 1024, 'abcdefg\n'));
    const said = await new Promise<SearchLine[]>((resolve) => {
      let text = '';
      const request = place.request(`/api/search?${STDOUT}&text=a`, {}, (response) => {
        place.rewrite('stdout', 'x\n');
        response.on('data', (piece: Buffer) => (text += piece));
        response.on('end', () =>
          resolve(
            text
              .trim()
              .split('\n')
              .map((line) => JSON.parse(line) as SearchLine),
          ),
        );
      });
      request.on('error', () => resolve([]));
    });
    expect(said.at(-1)).toMatchObject({ done: true, cut: expect.stringContaining('rewritten'), version: 'g2' });
  });
});

describe('numbers', () => {
  it('come with their names, and go on as the file grows', async () => {
    const place = await ViewPlace.withJob('step 1 loss 0.5\nwords\nstep 2 loss 0.25\n');
    const first = await place.lines<NumbersLine>(`/api/numbers?${STDOUT}&like=0`);
    expect(first).toEqual([
      { columns: ['step', 'loss'], version: 'g1' },
      {
        at: [0, 22],
        rows: [
          [1, 0.5],
          [2, 0.25],
        ],
      },
      { done: true, to: 39 },
    ]);
    fs.appendFileSync(place.mirrorOf(), 'step 3 loss nan\n');
    const rest = await place.lines<NumbersLine>(`/api/numbers?${STDOUT}&like=0&from=39`);
    expect(rest[1]).toEqual({ at: [39], rows: [[3, null]] });
    // What was cut off comes again from where the file ends by now.
    const none = await place.lines<NumbersLine>(`/api/numbers?${STDOUT}&like=0&from=1000`);
    expect(none.at(-1)).toEqual({ done: true, to: 55 });
  });

  it('that are very many are thinned', async () => {
    const place = await ViewPlace.withJob(Array.from({ length: 200_000 }, (_, index) => `x ${index}\n`).join(''));
    const said = await place.lines<NumbersLine>(`/api/numbers?${STDOUT}&like=0`);
    const rows = said.flatMap((line) => ('at' in line ? line.rows : []));
    expect(rows.length).toBeLessThan(150_000);
    expect(rows.length).toBeGreaterThan(50_000);
    expect(said.at(-1)).toMatchObject({ done: true });
  });
});

describe('a download', () => {
  it('is the bytes, and never looked at by a browser', async () => {
    const place = await ViewPlace.withJob(TEXT);
    const whole = await place.ask(`/api/raw?${STDOUT}`);
    expect(whole.headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment; filename="501-9001-stdout.log"; filename*=UTF-8\'\'501-9001-stdout.log',
      'x-content-type-options': 'nosniff',
    });
    expect(whole.body.equals(Buffer.from(TEXT))).toBe(true);
    const plain = await place.ask(`/api/raw?${STDOUT}&plain=1`);
    expect([plain.headers['content-type'], plain.text]).toEqual(['text/plain; charset=utf-8', TEXT]);
    expect(plain.headers['content-security-policy']).toMatch(/^sandbox;/);
  });

  it('of a file that is rewritten meanwhile breaks off', async () => {
    const place = await ViewPlace.withJob(Buffer.alloc(64 * 1024 * 1024, 'x'));
    const outcome = await new Promise<string>((resolve) => {
      place
        .request(`/api/raw?${STDOUT}`, {}, (response) => {
          place.rewrite('stdout', 'short');
          response.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
          response.on('end', () => resolve('whole'));
          response.resume();
        })
        .on('error', () => {});
    });
    expect(outcome).toBe('ECONNRESET');
    expect((await place.ask(`/api/raw?${STDOUT}`)).text).toBe('short');
  });
});

describe('results', () => {
  async function placeWithResults(): Promise<ViewPlace> {
    const place = await ViewPlace.withJob('live\n');
    place.addResult('/out/a.csv', 'x,y\n1,2\n', { sha256: 'aa', fetchedAt: 5 });
    place.addResult('/out/b.html', '<script>alert(1)</script>');
    place.addResult('/out/deep/c.png', 'no picture');
    place.addResult('/out/deep/er/d.txt', 'text');
    place.addResult('/top.pdf', '%PDF-1.7 and more');
    place.addResult('/waits');
    place.addResult('/../evil', undefined, { state: 'refused', reason: 'it has the part ..' });
    place.addResult('/live.txt', undefined, { state: 'linked', live: '9001/stdout' });
    return place;
  }

  it('are a tree, each level with its states', async () => {
    const place = await placeWithResults();
    const top = await place.json<ResultEntries>('/api/results?job=501');
    expect(top.entries.map(({ kind, name }) => [kind, name])).toEqual([
      ['directory', '/../'],
      ['file', '/live.txt'],
      ['directory', '/out/'],
      ['file', '/top.pdf'],
      ['file', '/waits'],
    ]);
    expect(top.entries[2]).toEqual({
      kind: 'directory',
      name: '/out/',
      task: null,
      files: 4,
      bytes: 47,
      states: { synced: 4 },
    });
    // A link is as long as its live file.
    expect(top.entries[1]).toMatchObject({ state: 'linked', bytes: 'live\n'.length });
    const out = await place.json<ResultEntries>('/api/results?job=501&under=/out/');
    expect(out.entries).toMatchObject([
      { name: '/out/a.csv', state: 'synced', bytes: 8, sha256: 'aa', fetchedAt: 5, preview: 'text' },
      { name: '/out/b.html', preview: 'text' },
      { kind: 'directory', name: '/out/deep/', files: 2 },
    ]);
    // Named by the task whose live files are in it, if it is one.
    const taskOfOut = async () => (await place.json<ResultEntries>('/api/results?job=501')).entries[2];
    place.commit('stdout', { listedName: '/out/stdout' });
    expect(await taskOfOut()).toMatchObject({ name: '/out/', task: '9001' });
    place.commit('stdout', { listedName: '/out/other' }, '501' as JobId, '9002' as TaskId);
    expect(await taskOfOut()).toMatchObject({ name: '/out/', task: null });
    const one = await place.json<ResultEntries>('/api/results?job=501&name=/out/a.csv');
    expect(one).toEqual({ entries: [out.entries[0]], more: false });
    expect((await place.ask('/api/results?job=501&name=/out/')).status).toBe(404);
    const rest = await place.json<ResultEntries>('/api/results?job=501&under=/out/&after=/out/b.html');
    expect(rest.entries.map(({ name }) => name)).toEqual(['/out/deep/']);
  });

  it('that are very many come in pages', async () => {
    const place = await ViewPlace.withJob('');
    const rows = Array.from({ length: 1_200 }, (_, index) => `many/${String(index).padStart(5, '0')}`);
    place.store.transaction(() => rows.forEach((name) => void place.addResult(name)));
    const found: string[] = [];
    for (let more = true; more; ) {
      const page = await place.json<ResultEntries>(`/api/results?job=501&under=many/&after=${found.at(-1) ?? ''}`);
      found.push(...page.entries.map(({ name }) => name));
      more = page.more;
    }
    expect(found).toEqual(rows);
  });

  it('are looked at like any content; a link is its live file, and what has not come is not there', async () => {
    const place = await placeWithResults();
    const lines = (name: string) => place.ask(`/api/lines?job=501&result=${encodeURIComponent(name)}`);
    expect((await lines('/out/a.csv')).text).toBe('x,y\n1,2\n');
    expect((await lines('/live.txt')).text).toBe('live\n');
    expect((await lines('/waits')).status).toBe(404);
    expect((await lines('/../evil')).status).toBe(404);
    expect((await lines('/nowhere')).status).toBe(404);
    const { headers } = await lines('/out/a.csv');
    place.addResult('/out/a.csv', 'other');
    const stale = await place.ask(`/api/lines?job=501&result=%2Fout%2Fa.csv&version=${headers['view-version']}`);
    expect(stale.status).toBe(409);
  });

  it('are previewed with nothing that runs, if they are what they are called', async () => {
    const place = await placeWithResults();
    const preview = (name: string) => place.ask(`/api/preview?job=501&result=${encodeURIComponent(name)}`);
    const { headers } = await preview('/top.pdf');
    expect(headers['content-type']).toBe('application/pdf');
    expect(headers['content-security-policy']).toMatch(/^sandbox; default-src 'none'/);
    expect(headers['content-security-policy']).not.toMatch(/allow-|script-src/);
    expect(headers['x-content-type-options']).toBe('nosniff');
    for (const name of ['/out/deep/c.png', '/out/a.csv', '/out/b.html', '/live.txt'])
      expect((await preview(name)).status, name).toBe(415);
  });
});
