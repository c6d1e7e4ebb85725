/** Files of one run of rsync, as they are handed over. */

import { createHash } from 'node:crypto';
import { getEventListeners } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import {
  isPartialUnused,
  makeOwnDirectory,
  PARTIAL_DIRECTORY,
  preparePartialDirectories,
} from '../../src/direct/directories.ts';
import { FLUSH_BYTES, Growing, RsyncArrivals } from '../../src/direct/rsync-arrivals.ts';
import type { FileDigest } from '../../src/system/files.ts';
import { until } from '../support/e2e-until.ts';
import { needsThat } from '../support/needs.ts';
import { openFilesIn, temporaryDirectory } from '../support/temp-directory.ts';
import { fileOf } from './place.ts';

function arrivalsOf(names: readonly string[], maxFileBytes: number | null = null) {
  const directory = fs.realpathSync(temporaryDirectory());
  const came: string[] = [];
  const digests: (FileDigest | undefined)[] = [];
  const { signal } = new AbortController();
  const tooLarge: string[] = [];
  fs.mkdirSync(path.join(directory, 'growing'));
  const arrivals = new RsyncArrivals({
    files: new Map(names.map((name) => [name, fileOf(name)])),
    arrival: directory,
    growing: path.join(directory, 'growing'),
    host: 'host',
    maxFileBytes,
    onTooLarge: (file) => tooLarge.push(file.parts.join('/')),
    onFiles: async (files) => {
      came.push(...files.map(({ file }) => file.parts.join('/')));
      digests.push(...files.map(({ digest }) => digest));
    },
    signal,
  });
  const put = (name: string) => fs.writeFileSync(path.join(directory, name), name);
  return { arrivals, signal, came, digests, tooLarge, put, directory };
}

it('a file that has no name yet when rsync tells of it is handed over as soon as it has one, not at the end', async () => {
  const { arrivals, came, put } = arrivalsOf(['late', 'here', 'never']);
  for (const name of ['late', 'here', 'never']) arrivals.report(name);
  put('here');
  // By then all of them were looked at.
  await until('the one that is here', () => came.includes('here'));
  expect(came).toEqual(['here']);
  put('late');
  await until('the one that was told too early', () => came.includes('late'));
  await arrivals.end();
  expect(came).toEqual(['here', 'late']);
});

it('what nobody told of, and what nobody asked for, are told apart at the end', async () => {
  const { arrivals, came, put, signal } = arrivalsOf(['unreported']);
  put('unreported');
  put('unasked');
  arrivals.report('unasked');
  await arrivals.end();
  expect(came).toEqual(['unreported']);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

it('what is larger than allowed, whatever size was announced, is not handed over', async () => {
  const complete = arrivalsOf(['five!', 'longer'], 5);
  for (const name of ['five!', 'longer']) complete.put(name);
  await complete.arrivals.end();
  expect([complete.came, complete.tooLarge]).toEqual([['five!'], ['longer']]);
  expect(fs.readdirSync(complete.directory).sort()).toEqual(['five!', 'growing']);
  const growing = arrivalsOf([], 5);
  growing.put('growing/.large');
  await until('it to be seen while it grows', () => growing.arrivals.signal.aborted);
  const message = 'host sends more bytes of a file than the 5 that are allowed';
  await expect(growing.arrivals.end()).rejects.toMatchObject({ code: 'unexpected-answer', message });
});

it('partial directories are there, for the agent alone, and unused, before rsync begins; one that cannot be made is named', async () => {
  const directory = temporaryDirectory();
  const own = path.join(directory, 'own');
  await makeOwnDirectory(own);
  await preparePartialDirectories(own, ['a/one', 'b']);
  for (const name of ['a/one', 'b']) expect(await isPartialUnused(path.join(own, name)), name).toBe(true);
  for (const name of ['', PARTIAL_DIRECTORY]) expect(fs.statSync(path.join(own, name)).mode & 0o777).toBe(0o700);
  await expect(makeOwnDirectory(path.join(directory, 'no', 'parent'))).rejects.toThrow(/^ENOENT: .* mkdir /);
});

/** Hands over a large file that rsync named after `happens` with the file that grew, while it was hashed. */
async function digestAfter(happens: (growing: string, partial: string) => string): Promise<FileDigest | undefined> {
  const { arrivals, digests, directory: arrival } = arrivalsOf(['11/large']);
  const growing = path.join(arrival, 'growing', '.large.a1B2c3');
  await preparePartialDirectories(arrival, ['11/large']);
  fs.writeFileSync(growing, Buffer.alloc(5_000_000, 'the first'));
  await until('it to be opened', () => openFilesIn(growing) > 0);
  // They are taken up one after the other: when the next one is opened, this one is followed.
  const next = path.join(path.dirname(growing), '.next.d4E5f6');
  fs.writeFileSync(next, Buffer.alloc(5_000_000));
  await until('the next one to be opened', () => openFilesIn(next) > 0);
  fs.renameSync(happens(growing, path.join(arrival, '11', PARTIAL_DIRECTORY, 'large')), path.join(arrival, '11/large'));
  arrivals.report('11/large');
  await arrivals.end();
  return digests[0];
}

/** To see which files the process has open. */
const IF_SEEN = needsThat(fs.existsSync('/proc/self/fd'), 'digests of files while they grow: it needs /proc');

it('a flush that failed fails the file, though later ones do not', async () => {
  const file = path.join(temporaryDirectory(), 'large');
  fs.writeFileSync(file, '');
  fs.truncateSync(file, 2 * FLUSH_BYTES);
  const handle = await fs.promises.open(file);
  vi.spyOn(handle, 'datasync').mockRejectedValueOnce(new Error('EIO')).mockResolvedValue();
  await expect(new Growing(handle).finish()).rejects.toThrow('EIO');
});

it('a large file that grew, and got its name, comes with its digest', IF_SEEN, async () => {
  const rest = 'more than it was when it was first seen';
  const digest = await digestAfter((growing) => {
    fs.appendFileSync(growing, rest);
    return growing;
  });
  const content = Buffer.concat([Buffer.alloc(5_000_000, 'the first'), Buffer.from(rest)]);
  expect(digest).toEqual({ bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') });
});

it(
  'a file that was kept as damaged, and sent again over itself, comes without one, also with the same length',
  IF_SEEN,
  async () => {
    const digest = await digestAfter((growing, partial) => {
      fs.renameSync(growing, partial);
      fs.writeFileSync(partial, Buffer.alloc(5_000_000, 'another one'), { flag: 'r+' });
      return partial;
    });
    expect(digest).toBeUndefined();
  },
);
