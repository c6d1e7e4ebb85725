/** When gzip is requested; compressed responses over real HTTP: what comes out, and what is refused. */

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

  test('of a short file of equal bytes, however well they are compressed', async () => {
    const zeros = Buffer.alloc(8 * 1024 * 1024);
    const { request } = await serve(() => [gzipSync(zeros)]);
    expect(zeros.equals(await readBody(await request(), zeros.length))).toBe(true);
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

/** Bytes a second. */
const slow = fc.integer({ min: 1_000, max: SLOW_RATE - 100_000 });
const fast = fc.integer({ min: SLOW_RATE + 100_000, max: 2_000_000_000 });
const chunkBytes = fc.integer({ min: 1_000, max: 1_000_000 });

/** So many measurements at a rate, in chunks of a length. */
function bring(compression: Compression, rate: number, times: number, bytes = MEASURED_BYTES): void {
  for (let time = 0; time < times; time += 1) {
    const measure = compression.measuring();
    for (let sent = 0; sent < MEASURED_BYTES; sent += bytes) measure(bytes, (bytes / rate) * 1000);
  }
}

describe('gzip is requested by how fast responses arrive, and by nothing else:', () => {
  test('so many slow measurements in a row switch it on, and fewer do not', () => {
    fc.assert(
      fc.property(slow, fast, chunkBytes, fc.nat(MEASUREMENTS - 1), (low, high, bytes, few) => {
        const compression = new Compression(() => 0);
        bring(compression, low, few, bytes);
        bring(compression, high, 1, bytes);
        bring(compression, low, MEASUREMENTS - 1, bytes);
        expect(compression.isWanted).toBe(false);
        bring(compression, low, 1, bytes);
        expect(compression.isWanted).toBe(true);
      }),
      numRuns(1000),
    );
  });

  test('short responses measure nothing', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(MEASURED_BYTES - 1), fc.nat(100_000))), (responses) => {
        const compression = new Compression(() => 0);
        for (const [bytes, ms] of responses) compression.measuring()(bytes, ms);
        expect(compression.isWanted).toBe(false);
      }),
      numRuns(1000),
    );
  });

  test('responses that share a wire are measured together', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 16 }), fast, slow, (places, ample, scarce) => {
        const rounds = (rate: number) => {
          const compression = new Compression(() => 0);
          const measures = Array.from({ length: places }, () => compression.measuring());
          // In each round every response brings a chunk, at its part of the rate.
          for (let round = 0; round < 200; round += 1) {
            for (const measure of measures) measure(16_384, ((16_384 * places) / rate) * 1000);
          }
          return compression.isWanted;
        };
        expect([rounds(ample * 2), rounds(scarce / 2)]).toEqual([false, true]);
      }),
      numRuns(300),
    );
  });

  test('after an hour one measurement decides anew', () => {
    fc.assert(
      fc.property(slow, fast, (low, high) => {
        for (const rate of [low, high]) {
          let nowMs = 5;
          const compression = new Compression(() => nowMs);
          bring(compression, low, MEASUREMENTS);
          nowMs += 60 * 60_000 - 1;
          expect(compression.isWanted).toBe(true);
          // What comes compressed measures nothing.
          bring(compression, low, MEASUREMENTS);
          nowMs += 1;
          expect(compression.isWanted).toBe(false);
          bring(compression, rate, 1);
          expect(compression.isWanted).toBe(rate === low);
        }
      }),
      numRuns(100),
    );
  });
});
