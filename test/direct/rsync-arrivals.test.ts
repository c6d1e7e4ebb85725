/** Files of one run of rsync, as they are handed over. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { RsyncArrivals } from '../../src/direct/rsync-arrivals.ts';
import { until } from '../support/e2e-until.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { fileOf, type NamedFile } from './transfers.ts';

function arrivalsOf(...names: readonly string[]) {
  const directory = temporaryDirectory();
  const came: string[] = [];
  const arrivals = new RsyncArrivals<NamedFile>({
    files: new Map(names.map((name) => [name, fileOf(name)])),
    arrival: directory,
    growing: path.join(directory, 'growing'),
    onFiles: async (files) => void came.push(...files.map(({ file }) => file.name)),
    signal: new AbortController().signal,
  });
  return { arrivals, came, put: (name: string) => fs.writeFileSync(path.join(directory, name), name) };
}

it('a file that has no name yet when rsync tells of it is handed over as soon as it has one, not at the end', async () => {
  const { arrivals, came, put } = arrivalsOf('late', 'here', 'never');
  for (const name of ['late', 'here', 'never']) arrivals.tell(name);
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
  const { arrivals, came, put } = arrivalsOf('untold');
  put('untold');
  put('unasked');
  arrivals.tell('unasked');
  await arrivals.end();
  expect(came).toEqual(['untold']);
});
