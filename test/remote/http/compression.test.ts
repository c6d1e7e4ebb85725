/** Compressed responses over real HTTP: what comes out, and what is refused. */

import { setImmediate as immediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Compression, MEASURED_BYTES, MEASUREMENTS, SLOW_RATE } from '../../../src/remote/http/compression.ts';
import { HttpClient, type HttpLimits, readBeginning, readBody } from '../../../src/remote/http/http-client.ts';
import { numRuns } from '../../support/property-runs.ts';
import { closedAtEnd, startHttpServer, until, type WireServer } from '../../support/wire-server.ts';

function wantedCompression(): Compression {
  const compression = new Compression();
  const measure = compression.measuring();
  for (let at = 0; at < MEASUREMENTS; at += 1) measure(MEASURED_BYTES, (MEASURED_BYTES / SLOW_RATE) * 2000);
  return compression;
}

const LIMITS: HttpLimits = { connectMs: 5000, headersMs: 20_000, idleMs: 20_000, totalMs: 60_000 };

interface Served {
  readonly server: WireServer;
  readonly compression: Compression;
  /** What the requests accepted. */
  readonly accepted: (string | string[] | undefined)[];
  request(signal?: AbortSignal): ReturnType<HttpClient['request']>;
}

interface ServeOptions {
  readonly header?: string;
  /** The body does not end. */
  readonly isOpen?: boolean;
  /** Its connection ends before it. */
  readonly isCut?: boolean;
  readonly idleMs?: number;
}

/** A server that sends the pieces one after the other, to a client that requests gzip. */
async function serve(
  pieces: () => readonly Buffer[],
  { header = 'gzip', isOpen = false, isCut = false, idleMs = LIMITS.idleMs }: ServeOptions = {},
): Promise<Served> {
  const accepted: Served['accepted'] = [];
  const server = closedAtEnd(
    await startHttpServer(async (request, response) => {
      accepted.push(request.headers['accept-encoding']);
      response.writeHead(200, { 'content-encoding': header });
      for (const piece of pieces()) {
        response.write(piece);
        await immediate();
      }
      if (isCut) response.destroy();
      else if (!isOpen) response.end();
    }),
  );
  const compression = wantedCompression();
  const http = closedAtEnd(new HttpClient({ limits: { ...LIMITS, idleMs }, compression }));
  const request = (signal = new AbortController().signal) =>
    http.request({ method: 'GET', url: server.url, headers: {}, signal });
  return { server, compression, accepted, request };
}

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return [...pieces, bytes.subarray(at)].filter((piece) => piece.length > 0);
}

const LOG = Buffer.from(Array.from({ length: 40_000 }, (_, at) => `${at} step ${at * 7919} done\n`).join(''));

describe('what comes out', () => {
  test('is what went in, however it is cut, in one member or several', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ minLength: 0, maxLength: 3000 }), { minLength: 1, maxLength: 4 }),
        fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 30 }),
        fc.nat(3),
        async (members, sizes, zeros) => {
          const packed = Buffer.concat([...members.map((member) => gzipSync(member)), Buffer.alloc(zeros)]);
          const { request, server } = await serve(() => cut(packed, sizes));
          expect(await readBody(await request(), 100_000)).toEqual(Buffer.concat(members));
          await server.close();
        },
      ),
      numRuns(100),
    );
  });

  test.each(['x-gzip', ' GZIP '])('declared as %j', async (header) => {
    const { request, accepted } = await serve(() => [gzipSync('hello')], { header });
    expect((await readBody(await request(), 5)).toString()).toBe('hello');
    expect(accepted).toEqual(['gzip']);
  });

  test('of an uncompressed response, and of an empty one', async () => {
    const plain = await serve(() => [LOG], { header: 'identity' });
    expect(LOG.equals(await readBody(await plain.request(), LOG.length))).toBe(true);
    const empty = await serve(() => []);
    expect(await readBody(await empty.request(), 0)).toEqual(Buffer.alloc(0));
    expect(empty.compression.isWanted).toBe(true);
  });

  test('is limited as it is without compression', async () => {
    const { request } = await serve(() => [gzipSync(LOG)]);
    await expect(readBody(await request(), LOG.length - 1)).rejects.toMatchObject({ code: 'answer-too-large' });
  });

  test('comes before the rest of the body has arrived, and the rest can be given up', async () => {
    const packed = gzipSync(LOG, { level: 0 });
    const { request, server, compression } = await serve(() => [packed.subarray(0, 200_000)], { isOpen: true });
    const beginning = await readBeginning(await request(), 100_000);
    expect(beginning.equals(LOG.subarray(0, beginning.length))).toBe(true);
    await until(() => server.open() === 0);
    expect(compression.isWanted).toBe(true);
  });
});

describe('what is refused, and gzip is not requested again', () => {
  const packed = gzipSync(LOG);
  const changed = Buffer.from(packed);
  changed[packed.length - 6] = (changed[packed.length - 6] ?? 0) ^ 1;
  const bomb = gzipSync(Buffer.alloc(30_000_000));
  test.each([
    ['cut gzip', packed.subarray(0, -5), 'malformed', 'is damaged gzip'],
    ['a cut header', packed.subarray(0, 4), 'malformed', 'is damaged gzip'],
    ['a wrong checksum', changed, 'malformed', 'is damaged gzip'],
    ['no gzip', LOG.subarray(0, 10_000), 'malformed', 'is damaged gzip'],
    ['bytes after the end', Buffer.concat([packed, Buffer.from('more')]), 'malformed', 'is damaged gzip'],
    ['a bomb', bomb, 'answer-too-large', 'is over 250 times as large as its compressed bytes'],
  ] as const)('%s', async (_, bytes, code, says) => {
    const { request, server, compression, accepted } = await serve(() => [bytes]);
    const reading = async () => readBody(await request(), 1_000_000_000);
    await expect(reading()).rejects.toMatchObject({
      code,
      message: `the response of 127.0.0.1:${server.port} ${says}`,
    });
    expect(compression.isWanted).toBe(false);
    // The server compresses though it was not asked to.
    await expect(request()).rejects.toMatchObject({ code: 'malformed' });
    expect(accepted).toEqual(['gzip', 'identity']);
  });

  test.each(['br', 'deflate', 'gzip, gzip'])('what is declared as %j', async (header) => {
    const { request } = await serve(() => [packed], { header });
    await expect(request()).rejects.toMatchObject({ code: 'malformed' });
  });
});

describe('failures on the way', () => {
  test.each([
    ['a connection that ends', { isCut: true }, 'interrupted'],
    ['silence', { isOpen: true, idleMs: 80 }, 'timeout'],
  ])('%s within the body counts by the bytes on the wire', async (_, how, code) => {
    const { request, compression } = await serve(() => [gzipSync(LOG).subarray(0, -1)], how);
    await expect(request().then((got) => readBody(got, LOG.length))).rejects.toMatchObject({ code });
    expect(compression.isWanted).toBe(true);
  });

  test('a stop between two chunks counts, even if the whole body has arrived', async () => {
    const { request } = await serve(() => [gzipSync(LOG)]);
    const stop = new AbortController();
    const chunks = (await request(stop.signal)).body[Symbol.asyncIterator]();
    await chunks.next();
    stop.abort();
    await expect(chunks.next()).rejects.toMatchObject({ code: 'aborted' });
  });
});
