/** What can be reached below a directory: regular files, by no link, whatever is swapped meanwhile. */

import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { namesBelow, openBelow } from '../../../src/view/content/below.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

function setUp() {
  const directory = temporaryDirectory();
  const root = path.join(directory, 'root');
  fs.mkdirSync(path.join(root, 'a', 'b'), { recursive: true });
  fs.writeFileSync(path.join(root, 'a', 'b', 'file'), 'inside');
  fs.mkdirSync(path.join(directory, 'secret', 'b'), { recursive: true });
  fs.writeFileSync(path.join(directory, 'secret', 'b', 'file'), 'outside');
  return { directory, root, secret: path.join(directory, 'secret') };
}

function contentOf(opened: number | undefined): string | undefined {
  if (opened === undefined) return undefined;
  try {
    return fs.readFileSync(opened, 'utf8');
  } finally {
    fs.closeSync(opened);
  }
}

const openFiles = () => fs.readdirSync('/proc/self/fd').length;

/** As on Linux, and as on a system that has no /proc. */
const DESCRIPTORS = ['/proc/self/fd', '/nowhere'];

describe('below a directory', () => {
  it.for(DESCRIPTORS)('by %s, a file is opened, and so it is if the directory itself is a link', (descriptors) => {
    const { directory, root } = setUp();
    const link = path.join(directory, 'link');
    fs.symlinkSync(root, link);
    for (const from of [root, link]) expect(contentOf(openBelow(from, ['a', 'b', 'file'], descriptors))).toBe('inside');
    expect(namesBelow(root, ['a'], descriptors)).toEqual(['b']);
  });

  it.for(DESCRIPTORS)(
    'by %s, nothing is opened by a link, nor what is no file, and nothing is left open',
    (descriptors) => {
      const { root, secret } = setUp();
      fs.symlinkSync(path.join(secret, 'b', 'file'), path.join(root, 'a', 'b', 'link'));
      fs.symlinkSync(path.join(secret, 'b'), path.join(root, 'a', 'linked'));
      fs.symlinkSync('.', path.join(root, 'a', 'here'));
      spawnSync('mkfifo', [path.join(root, 'a', 'b', 'pipe')]);
      const before = openFiles();
      for (const parts of [
        ['a', 'b', 'link'],
        ['a', 'linked', 'file'],
        ['a', 'here', 'b', 'file'],
        ['a', 'b', 'pipe'],
        ['a', 'b'],
        ['a', 'b', 'missing'],
        ['a', 'b', 'file', 'further'],
        ['a', 'b', 'x'.repeat(300)],
      ])
        expect(openBelow(root, parts, descriptors), parts.join('/')).toBeUndefined();
      expect(namesBelow(root, ['a', 'linked'], descriptors)).toEqual([]);
      expect(openFiles()).toBe(before);
    },
  );

  it.each(['..', '.', '', 'a/b', '../secret', '\0', 'a\0'])('%j is no name', (name) => {
    const { root } = setUp();
    expect(() => openBelow(root, [name, 'b', 'file'])).toThrow('a name that is none');
    expect(() => openBelow(root, ['a', name])).toThrow('a name that is none');
  });

  it('a directory that becomes a link between two system calls leads nowhere else', () => {
    const { root, secret } = setUp();
    // Another thread swaps it as fast as it can.
    const swapper = new Worker(
      `const fs = require('node:fs');
       const { at, away, secret } = require('node:worker_threads').workerData;
       for (;;) {
         fs.renameSync(at, away); fs.symlinkSync(secret, at);
         fs.unlinkSync(at); fs.renameSync(away, at);
       }`,
      { eval: true, workerData: { at: path.join(root, 'a'), away: path.join(root, 'away'), secret } },
    );
    onTestFinished(() => void swapper.terminate());
    const found = new Set<string | undefined>();
    const isSeen = () => found.has('inside') && found.has(undefined);
    for (let tries = 0; tries < 20_000 || (!isSeen() && tries < 2_000_000); tries++)
      found.add(contentOf(openBelow(root, ['a', 'b', 'file'])));
    expect([...found].toSorted()).toEqual(['inside', undefined]);
    return swapper.terminate();
  });
});
