import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { Operation } from '../../../../src/operations.ts';
import { entry, fileResponse, partsResponse } from '../../../support/wire-envelopes.ts';
import { createRemote, JOB, TASK } from '../../../support/wire-remote.ts';
import { bodyOf, closedAtEnd, startHttpServer } from '../../../support/wire-server.ts';

const MIB = 1024 * 1024;
const BYTES = 256 * MIB;
/** Far less than what is sent, and room for the garbage of a busy process. */
const MAX_GROWTH_BYTES = 150 * MIB;

const signal = new AbortController().signal;

/** A remote whose service answers with `times` times `block`. */
async function serve(operation: Operation, block: Buffer, times: number) {
  const envelope = operation === 'DownloadFileFromCluster' ? fileResponse('|') : partsResponse(entry('|'));
  const [before = '', after = ''] = envelope.split('|').map((part) => Buffer.from(part));
  const blocks = function* () {
    yield before;
    for (let count = 0; count < times; count += 1) yield block;
    yield after;
  };
  const server = await startHttpServer(async (request, response) => {
    await bodyOf(request);
    response.writeHead(200, { 'content-type': 'text/xml' });
    Readable.from(blocks()).pipe(response);
  });
  return closedAtEnd(createRemote(closedAtEnd(server).url));
}

/** Runs `work` and tells by how much the process grew meanwhile. */
async function growthOf(work: () => Promise<void>): Promise<number> {
  const start = process.memoryUsage().rss;
  let peak = start;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss);
  }, 5);
  await work();
  clearInterval(timer);
  return Math.max(peak, process.memoryUsage().rss) - start;
}

test('a file of 256 MiB passes through in constant memory', async () => {
  // A block whose length three divides: its base64 has no padding and can be written again and again.
  const block = randomBytes(3 * MIB);
  const times = Math.ceil(BYTES / block.length);
  const expected = createHash('sha256');
  for (let count = 0; count < times; count += 1) expected.update(block);
  const { remote } = await serve('DownloadFileFromCluster', Buffer.from(block.toString('base64')), times);
  const got = createHash('sha256');
  const growth = await growthOf(async () => {
    const length = await remote.downloadFile(JOB, '/big', (bytes) => void got.update(bytes), signal);
    expect(length).toBe(block.length * times);
  });
  expect(got.digest('hex')).toBe(expected.digest('hex'));
  expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
});

test('a text of 256 MiB is held in constant memory', async () => {
  const text = Buffer.from(`${'Příliš žluťoučký kůň 😀 0123456789 '.repeat(1000)}\r\n`);
  const color = Buffer.from('&#x1B;[0m');
  const times = Math.ceil(BYTES / (text.length + color.length));
  const { remote } = await serve('DownloadPartsOfJobFilesFromCluster', Buffer.concat([color, text]), times);
  const plain = Buffer.concat([Buffer.from('\x1b[0m'), text]);
  const growth = await growthOf(async () => {
    const { parts } = await remote.readParts(JOB, [{ taskId: TASK, file: 'stdout', offset: 0 }], signal);
    const content = parts[0]?.content;
    expect(content?.length).toBe(plain.length * times);
    for (let count = 0; count < times; count += Math.floor(times / 50)) {
      const read = await content?.read(count * plain.length, (count + 1) * plain.length);
      expect(read?.equals(plain)).toBe(true);
    }
    await content?.release();
  });
  expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
});
