/** That what a fleet is held against would find what it is looked for. */

import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Attempt } from '../../support/fleet.ts';
import { WrittenFile } from '../../support/fleet-files.ts';
import { lateGrowths, overlaps } from '../../support/fleet-proof.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

function writtenFile() {
  const directory = temporaryDirectory();
  const [real, mirror] = [path.join(directory, 'real'), path.join(directory, 'mirror')];
  return { file: new WrittenFile('file', real, mirror), real, mirror };
}

describe('a written file', () => {
  it('finds nothing wrong with a mirror that lags behind, or keeps what was before', () => {
    const { file, real, mirror } = writtenFile();
    expect(file.wrong()).toBeUndefined();
    file.append(10);
    fs.writeFileSync(mirror, fs.readFileSync(real).subarray(0, 100));
    expect([file.wrong(), file.isEqual]).toEqual([undefined, false]);
    fs.copyFileSync(mirror, `${mirror}.1`);
    file.rewrite();
    fs.copyFileSync(real, mirror);
    expect([file.wrongInTheEnd(), file.isEqual]).toEqual([undefined, true]);
  });

  it.for<[what: string, spoil: (mirror: string) => void]>([
    ['never were in the file', (mirror) => fs.appendFileSync(mirror, '!')],
    ['never were in the file', (mirror) => fs.writeFileSync(mirror, fs.readFileSync(mirror).subarray(100))],
    ['never were in the file', (mirror) => fs.writeFileSync(mirror, Buffer.alloc(1_000))],
    ['bytes are here', (mirror) => fs.truncateSync(mirror, 1_000)],
    ['made up', (mirror) => fs.copyFileSync(mirror, `${mirror}.1`)],
    ['made up', (mirror) => fs.copyFileSync(`${mirror}.1`, `${mirror}.2`)],
    ['an empty generation', (mirror) => fs.writeFileSync(`${mirror}.1`, '')],
    ['are lost', (mirror) => fs.truncateSync(`${mirror}.1`, 10)],
    ['are lost', (mirror) => fs.rmSync(`${mirror}.1`)],
  ])('finds that bytes or generations %s', ([what, spoil]) => {
    const { file, real, mirror } = writtenFile();
    file.append(50);
    fs.copyFileSync(real, mirror);
    expect(file.wrong()).toBeUndefined();
    fs.copyFileSync(mirror, `${mirror}.1`);
    file.rewrite();
    fs.copyFileSync(real, mirror);
    expect(file.wrongInTheEnd()).toBeUndefined();
    spoil(mirror);
    expect(file.wrongInTheEnd()).toContain(what);
  });
});

const attempt = (jobId: string, number: number, takenAt: number, endedAt: number | null): Attempt => ({
  jobId,
  attempt: number,
  agent: 'anna',
  takenAt,
  endedAt,
  how: null,
});

it('attempts overlap where one begins before the last one ended, or has its number', () => {
  expect(overlaps([attempt('1', 1, 0, 10), attempt('1', 2, 10, null), attempt('2', 1, 5, null)])).toEqual([]);
  expect(overlaps([attempt('1', 1, 0, 11), attempt('1', 2, 10, null)])).toHaveLength(1);
  expect(overlaps([attempt('1', 1, 0, null), attempt('1', 2, 10, null)])).toHaveLength(1);
  expect(overlaps([attempt('1', 2, 0, 5), attempt('1', 2, 10, null)])).toHaveLength(1);
});

it('a mirror that grows by somebody who does not own the job is found', () => {
  const attempts = [attempt('1', 1, 10_000, 20_000), { ...attempt('1', 2, 20_000, null), agent: 'ben' }];
  const growth = (at: number) => [{ jobId: '1', at }];
  expect(lateGrowths('anna', growth(15_000), attempts)).toEqual([]);
  expect(lateGrowths('ben', growth(90_000), attempts)).toEqual([]);
  expect(lateGrowths('anna', growth(25_000), attempts)).toHaveLength(1);
  expect(lateGrowths('ben', growth(15_000), attempts)).toHaveLength(1);
  expect(lateGrowths('anna', [{ jobId: '2', at: 15_000 }], attempts)).toHaveLength(1);
});
