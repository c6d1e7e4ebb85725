/** When gzip is requested; compressed responses over real HTTP: what comes out, and what is refused. */
import { setImmediate as immediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ErrorCode } from '../../../src/errors.ts';
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
  /** Of a body that is read. */
  readonly maxBytes?: number;
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

test('what comes out is what went in, however it is cut, in one member or several', async () => {
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

const PACKED = gzipSync(LOG);
const CHANGED = PACKED.map((byte, at) => (at === PACKED.length - 6 ? byte ^ 1 : byte)) as Buffer;
const ZEROS = Buffer.alloc(8 * 1024 * 1024);
const BOMB = gzipSync(Buffer.alloc(30_000_000));
const DAMAGED = 'is damaged gzip';
const CUT = PACKED.subarray(0, -1);

type Case = [what: string, sent: Buffer, outcome: Buffer | ErrorCode, how?: ServeOptions, says?: string];

test.each<Case>([
  ['declared as x-gzip', PACKED, LOG, { header: 'x-gzip' }],
  ['declared as GZIP', PACKED, LOG, { header: ' GZIP ' }],
  ['that is not compressed', LOG, LOG, { header: 'identity' }],
  ['without bytes', Buffer.alloc(0), Buffer.alloc(0)],
  ['of a short file of equal bytes, however well they are compressed', gzipSync(ZEROS), ZEROS],
  ['of more bytes than are allowed', PACKED, 'answer-too-large', { maxBytes: LOG.length - 1 }],
  ['declared as br', PACKED, 'malformed', { header: 'br' }],
  ['declared as gzip twice', PACKED, 'malformed', { header: 'gzip, gzip' }],
  // These count by the bytes on the wire.
  ['whose connection ends', CUT, 'interrupted', { isCut: true }],
  ['that falls silent', CUT, 'timeout', { isOpen: true, idleMs: 80 }],
  ['of cut gzip', PACKED.subarray(0, -5), 'malformed', {}, DAMAGED],
  ['of a cut header', PACKED.subarray(0, 4), 'malformed', {}, DAMAGED],
  ['with a wrong checksum', CHANGED, 'malformed', {}, DAMAGED],
  ['of no gzip', LOG.subarray(0, 10_000), 'malformed', {}, DAMAGED],
  ['with bytes after the end', Buffer.concat([PACKED, Buffer.from('more')]), 'malformed', {}, DAMAGED],
  ['that is a bomb', BOMB, 'answer-too-large', {}, 'is over 250 times as large as its compressed bytes'],
])('a response %s is read, or refused, and gzip requested again or not', async (_, sent, outcome, how, says) => {
  const { request, server, compression, accepted } = await serve(() => [sent], how);
  const reading = (async () => readBody(await request(), how?.maxBytes ?? 1_000_000_000))();
  const message = says === undefined ? expect.any(String) : `the response of 127.0.0.1:${server.port} ${says}`;
  if (typeof outcome === 'string') await expect(reading).rejects.toMatchObject({ code: outcome, message });
  else expect(outcome.equals(await reading)).toBe(true);
  expect([accepted, compression.isWanted]).toEqual([['gzip'], says === undefined]);
  if (says === undefined) return;
  // The server compresses though it was not asked to.
  await expect(request()).rejects.toMatchObject({ code: 'malformed' });
  expect(accepted).toEqual(['gzip', 'identity']);
});

test('a response comes before the rest of its body has arrived, and the rest can be given up', async () => {
  const packed = gzipSync(LOG, { level: 0 });
  const { request, server, compression } = await serve(() => [packed.subarray(0, 200_000)], { isOpen: true });
  const beginning = await readBeginning(await request(), 100_000);
  expect(beginning.equals(LOG.subarray(0, beginning.length))).toBe(true);
  await until(() => server.open() === 0);
  expect(compression.isWanted).toBe(true);
});

test('a stop between two chunks counts, even if the whole body has arrived', async () => {
  const { request } = await serve(() => [PACKED]);
  const stop = new AbortController();
  const chunks = (await request(stop.signal)).body[Symbol.asyncIterator]();
  await chunks.next();
  stop.abort();
  await expect(chunks.next()).rejects.toMatchObject({ code: 'aborted' });
});

/** Responses at the same time, their rate as a part of SLOW_RATE, and how many bytes each has. */
const RATES: Readonly<Record<string, readonly [places: number, rate: number, bytes: number]>> = {
  slow: [1, 0.999, MEASURED_BYTES],
  fast: [1, 1.001, MEASURED_BYTES],
  short: [1, 0.001, MEASURED_BYTES - 1],
  scarce: [8, 0.5, 4 * MEASURED_BYTES],
  ample: [8, 2, 4 * MEASURED_BYTES],
};

test.each([
  ['three slow measurements in a row switch it on', 'no, slow 2, fast 1, slow 2, no, slow 1, yes'],
  ['short responses measure nothing', 'short 9, no'],
  ['responses that share a scarce wire are measured together', 'scarce 1, yes'],
  ['responses that share an ample wire are measured together', 'ample 9, no'],
  ['what comes compressed measures nothing', 'slow 3, +3599999, yes, slow 3, +1, no'],
  ['after an hour one slow measurement switches it on', 'slow 3, +3600000, slow 1, yes'],
  ['after an hour one fast measurement leaves it off', 'slow 3, +3600000, fast 1, slow 2, no, slow 1, yes'],
])('gzip is requested by how fast responses arrive, in chunks of any length: %s', (_, story) => {
  for (const chunk of [1_000, 16_384]) {
    let nowMs = 5;
    const compression = new Compression(() => nowMs);
    for (const step of story.split(', ')) {
      const [word = '', times] = step.split(' ');
      const [places, rate, bytes] = RATES[word] ?? [0, 0, 0];
      if (word.startsWith('+')) nowMs += Number(word);
      else if (places === 0) expect(compression.isWanted, step).toBe(word === 'yes');
      for (let time = 0; time < Number(times ?? 0); time += 1) {
        const measures = Array.from({ length: places }, () => compression.measuring());
        for (let sent = 0; sent < bytes; sent += chunk) {
          const piece = Math.min(chunk, bytes - sent);
          for (const measure of measures) measure(piece, ((piece * places) / (rate * SLOW_RATE)) * 1000);
        }
      }
    }
  }
});
