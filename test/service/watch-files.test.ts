import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { watchFiles } from '../../src/service/watch-files.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

function start(files: readonly string[]) {
  const changed: string[] = [];
  const stop = watchFiles({ files, polling: false, onChange: (file) => changed.push(file) });
  onTestFinished(stop);
  return changed;
}

const soon = (condition: () => void) => vi.waitFor(condition, { timeout: 20_000 });

test('tells of a file that is made, written, and replaced, and of no other', async () => {
  const directory = temporaryDirectory();
  const [file, other] = [path.join(directory, 'wake'), path.join(directory, 'other')];
  const changed = start([file]);
  fs.writeFileSync(other, 'other');
  for (const change of [
    () => fs.writeFileSync(file, ''),
    () => fs.appendFileSync(file, 'more'),
    () => fs.renameSync(other, file),
  ]) {
    changed.length = 0;
    change();
    await soon(() => expect(changed).toContain(file));
  }
  expect(new Set(changed)).toEqual(new Set([file]));
});

test('tells of a change that leaves length and time as they were', async () => {
  const file = path.join(temporaryDirectory(), 'wake');
  const write = (text: string) => {
    fs.writeFileSync(file, text);
    fs.utimesSync(file, 1_000_000_000, 1_000_000_000);
  };
  write('before');
  const changed = start([file]);
  write('behind');
  await soon(() => expect(changed).toContain(file));
});

test('finds by itself what no watch tells of', async () => {
  const directory = temporaryDirectory();
  const current = path.join(directory, 'current');
  for (const version of ['old', 'newer']) {
    fs.mkdirSync(path.join(directory, version));
    fs.writeFileSync(path.join(directory, version, 'config.yaml'), version);
  }
  fs.symlinkSync('old', current);
  const file = path.join(current, 'config.yaml');
  const changed = start([file]);
  // The watch is on the old directory, in which nothing happens.
  fs.symlinkSync('newer', `${current}.new`);
  fs.renameSync(`${current}.new`, current);
  await soon(() => expect(changed).toEqual([file]));
});
