/** Raw bytes of live files by direct transfer. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { DirectLiveFiles } from '../../../../src/agent/results/download/direct-bytes.ts';
import { resultsDirectory } from '../../../../src/agent/results/results.ts';
import { JobtailError } from '../../../../src/errors.ts';
import type { JobId } from '../../../../src/job.ts';
import { DiskReserve, fileCalls } from '../../../../src/system/files.ts';
import { openFilesIn } from '../../../support/temp-directory.ts';
import { directBy, JOB, ModelTransfer, ResultsPlace } from '../place.ts';

const NAME = '/11/stdout.txt';
const CONTENT = Buffer.from(Array.from({ length: 300_000 }, (_, line) => `${line}\n`).join(''));

function setUp() {
  const place = new ResultsPlace();
  const transfer = new ModelTransfer(place);
  const { direct } = directBy(place, transfer, 'auto');
  place.restarted({ direct });
  place.remote.set(NAME, CONTENT);
  const resultsOf = (jobId: JobId) => resultsDirectory(place.mirror, jobId);
  const reserve = new DiskReserve(place.mirror, 0, fileCalls(false));
  const files = new DirectLiveFiles({ direct, remote: place.remote, reserve, resultsOf });
  const { signal } = new AbortController();
  const pieces: Buffer[] = [];
  const fetch = (name = NAME) => files.downloadFile(JOB, name, (bytes) => void pieces.push(Buffer.from(bytes)), signal);
  const staged = () => fs.readdirSync(path.join(place.mirror, JOB)).filter((name) => name.startsWith('.'));
  fs.mkdirSync(path.join(place.mirror, JOB));
  return { place, transfer, files, fetch, staged, came: () => Buffer.concat(pieces) };
}

test('a live file comes whole, each piece taken before the next one is read, and nothing stays beside its mirror', async () => {
  const { place, files, staged } = setUp();
  const openBefore = openFilesIn(place.directory);
  const pieces: Buffer[] = [];
  let [waiting, mostWaiting] = [0, 0];
  const sink = async (bytes: Buffer) => {
    mostWaiting = Math.max(mostWaiting, ++waiting);
    const piece = Buffer.from(bytes);
    await new Promise((resolve) => setTimeout(resolve, 20));
    pieces.push(piece);
    waiting -= 1;
  };
  expect(await files.downloadFile(JOB, NAME, sink, new AbortController().signal)).toBe(CONTENT.length);
  expect(openFilesIn(place.directory)).toBe(openBefore);
  expect(Buffer.concat(pieces).equals(CONTENT)).toBe(true);
  expect([mostWaiting, staged(), place.remote.downloads]).toEqual([1, [], []]);
});

test('a stop between two pieces is the end of a live file', async () => {
  const { files } = setUp();
  const stop = new AbortController();
  const sink = vi.fn(() => stop.abort());
  await expect(files.downloadFile(JOB, NAME, sink, stop.signal)).rejects.toThrow();
  expect(sink).toHaveBeenCalledOnce();
});

test('a live file that the host does not have, or with an unsafe name, is one that is not found', async () => {
  const { transfer, fetch, came } = setUp();
  transfer.passesOver.add(NAME);
  await expect(fetch()).rejects.toMatchObject({ code: 'not-found' });
  await expect(fetch('/11/../../stdout.txt')).rejects.toMatchObject({ code: 'not-found' });
  expect(came().length).toBe(0);
});

test('live files and results of a job that come at the same time share one temporary key', async () => {
  const { place, fetch, came } = setUp();
  place.remote.set('/11/large', Buffer.alloc(5_000));
  await Promise.all([fetch(), place.sync(), fetch(), fetch()]);
  expect(came().length).toBe(3 * CONTENT.length);
  expect(place.remote.transferCalls).toEqual(['get']);
});

test('a live file that waits for another one of its job ends when it is stopped, not with that one', async () => {
  const { files, fetch, transfer, place } = setUp();
  const together = transfer.fetch.bind(transfer);
  let isHeld = true;
  transfer.fetch = async (request) => {
    await vi.waitUntil(() => !isHeld);
    await together(request);
  };
  const first = fetch();
  const stop = new AbortController();
  const second = files.downloadFile(JOB, NAME, () => {}, stop.signal);
  stop.abort();
  await expect(second).rejects.toMatchObject({ code: 'aborted' });
  isHeld = false;
  expect(await first).toBe(CONTENT.length);
  expect(place.remote.transferCalls).toEqual(['get']);
});

test('a transfer that failed leaves what can be resumed until the job is over, and closes the way for a while', async () => {
  const { place, transfer, files, fetch, staged } = setUp();
  const together = transfer.fetch.bind(transfer);
  transfer.fetch = async (request) => {
    await together({ ...request, onFiles: async () => {} });
    throw new JobtailError('interrupted', 'it broke');
  };
  await expect(fetch()).rejects.toMatchObject({ code: 'interrupted' });
  expect([files.isOpen(JOB), staged()]).toEqual([false, ['.direct-live']]);
  place.monotonic += 10 * 60_000;
  expect(files.isOpen(JOB)).toBe(true);
  await place.results.endTransfer(JOB, { remote: place.remote, signal: new AbortController().signal });
  expect(staged()).toEqual([]);
});
