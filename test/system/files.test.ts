/** Calls on files: the same answers at once and by a thread, and no thread of ours waits for a network file system. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { digestOf } from '../../src/agent/results/place/temporary-files.ts';
import { flushAll, makeDirectories } from '../../src/system/directories.ts';
import { AT_ONCE_BYTES, EXACT, fileCalls, writeAll, writeNewFile } from '../../src/system/files.ts';
import { directBy, JOB, ModelTransfer, ResultsPlace } from '../agent/results/place.ts';
import { openFilesIn, temporaryDirectory } from '../support/temp-directory.ts';

/** The names of the synchronous calls on what is below a directory, in the order of their first use. */
function watchSynchronous(below: string): Set<string> {
  const { readlinkSync } = fs;
  const called = new Set<string>();
  const calls = fs as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const [name, call] of Object.entries(calls)) {
    // Some are of other systems only.
    if (!name.endsWith('Sync') || typeof call !== 'function') continue;
    vi.spyOn(calls, name).mockImplementation((...args) => {
      const file = typeof args[0] === 'number' ? readlinkSync(`/proc/self/fd/${args[0]}`) : String(args[0]);
      if (file.startsWith(below)) called.add(name);
      return call(...args);
    });
  }
  return called;
}

/** Looks in which files come, change, stay, are links to mirrors, and cannot take their places. */
async function looks(onNetwork: boolean, byDirect: boolean) {
  const place = new ResultsPlace();
  place.restarted({ onNetwork, ...(byDirect ? directBy(place, new ModelTransfer(place)) : {}) });
  place.live('stdout', 'live\n');
  place.remote.set('/11/stdout.txt', 'live\n');
  place.remote.set('/11/same', 'same');
  place.remote.set('/11/changes', 'before');
  place.remote.set('/11/large', Buffer.alloc(2 * AT_ONCE_BYTES));
  place.remote.set('/11/planted', 'x');
  await fs.promises.mkdir(place.path('11'), { recursive: true });
  await fs.promises.symlink('/etc/passwd', place.path('11', 'planted'));
  const called = watchSynchronous(place.mirror);
  onTestFinished(() => void vi.restoreAllMocks());
  expect(await place.sync(true)).toMatchObject({ fetched: 3, changed: 3, failed: 1 });
  place.remote.set('/11/changes', 'after');
  expect(await place.sync(true)).toMatchObject({ fetched: 3, changed: 1, failed: 1 });
  vi.restoreAllMocks();
  expect(place.store.results.counts(JOB)).toMatchObject({ synced: 4, inFlux: 1, linked: 1, failed: 1 });
  return called;
}

describe('a look at results', () => {
  it.each([
    ['SOAP', false],
    ['a direct transfer', true],
  ])('by %s makes no synchronous call on a network file system, where it may never end', async (_, byDirect) => {
    expect(await looks(true, byDirect)).toEqual(new Set());
  });
});

describe.each([
  ['at once', false],
  ['by a thread', true],
])('calls on files %s', (_, onNetwork) => {
  const calls = fileCalls(onNetwork);

  it('say what stands there, and that nothing does', async () => {
    const directory = temporaryDirectory();
    const [file, link] = [path.join(directory, 'file'), path.join(directory, 'link')];
    expect(await calls.lstat(file)).toBeUndefined();
    expect(await calls.stat(file)).toBeUndefined();
    fs.writeFileSync(file, 'content');
    fs.symlinkSync('file', link);
    expect((await calls.lstat(link))?.isSymbolicLink()).toBe(true);
    expect((await calls.stat(link))?.size).toBe(7);
    expect(await calls.readlink(link)).toBe('file');
    const loop = path.join(directory, 'loop');
    fs.symlinkSync('loop', loop);
    await expect((async () => calls.stat(loop))()).rejects.toMatchObject({ code: 'ELOOP' });
  });

  it('write, read, cut and flush an open file of any size', async () => {
    const file = path.join(temporaryDirectory(), 'file');
    const flags = fs.constants.O_RDWR | fs.constants.O_CREAT;
    const opened = await calls.open(file, flags, 0o640);
    const content = Buffer.alloc(3 * AT_ONCE_BYTES + 1, 'all of it ');
    await writeAll(opened, content, null);
    await writeAll(opened, Buffer.from('behind'), content.length);
    await writeAll(opened, Buffer.from('ALL'), 0);
    content.write('ALL');
    await opened.datasync();
    expect(await opened.stat(EXACT)).toMatchObject({ size: BigInt(content.length + 6) });
    await opened.truncate(content.length);
    const read = Buffer.alloc(content.length);
    for (let at = 0; at < read.length; ) at += (await opened.read(read, at, read.length - at, at)).bytesRead;
    expect(read.equals(content)).toBe(true);
    expect((await opened.read(read, 0, 1, content.length)).bytesRead).toBe(0);
    await opened.close();
    expect(fs.statSync(file).mode & 0o777).toBe(0o640);
    await expect((async () => calls.open(`${file}/x`, flags))()).rejects.toMatchObject({ code: 'ENOTDIR' });
  });

  it('leave nothing of a new file that is not whole, and nothing else than what is there', async () => {
    const directory = temporaryDirectory();
    const make = (pieces: number, error?: Error) =>
      writeNewFile(calls, path.join(directory, 'new'), 0o640, async (write) => {
        for (let piece = 0; piece < pieces; piece++) await write(Buffer.alloc(AT_ONCE_BYTES));
        if (error !== undefined) throw error;
      });
    const away = new Error('the server went away');
    for (const pieces of [1, 3]) {
      await expect(make(pieces, away)).rejects.toBe(away);
      expect([fs.readdirSync(directory), openFilesIn(directory)]).toEqual([[], 0]);
    }
    expect(await make(3)).toMatchObject({ bytes: 3 * AT_ONCE_BYTES });
    await expect(make(4)).rejects.toMatchObject({ code: 'EEXIST' });
    expect([fs.statSync(path.join(directory, 'new')).size, openFilesIn(directory)]).toEqual([3 * AT_ONCE_BYTES, 0]);
  });

  it('give the digests of files of all sizes, several at a time, and of nothing but files', async () => {
    const directory = temporaryDirectory();
    const sizes = [0, 1, AT_ONCE_BYTES - 1, AT_ONCE_BYTES, AT_ONCE_BYTES + 1, 5 * AT_ONCE_BYTES];
    const digests = sizes.flatMap((size) => [Number.POSITIVE_INFINITY, 0, AT_ONCE_BYTES].map((end) => ({ size, end })));
    const found = await Promise.all(
      digests.map(async ({ size, end }, index) => {
        const file = path.join(directory, `${index}`);
        const content = Buffer.alloc(size, `${index} `);
        fs.writeFileSync(file, content);
        const wanted = content.subarray(0, end);
        const expected = { bytes: wanted.length, sha256: createHash('sha256').update(wanted).digest('hex') };
        return [await digestOf(calls, file, end), expected];
      }),
    );
    for (const [digest, expected] of found) expect(digest).toEqual(expected);
    fs.symlinkSync('0', path.join(directory, 'link'));
    for (const name of ['none', 'link', '.']) expect(await digestOf(calls, path.join(directory, name))).toBeUndefined();
  });
});

it('directories that another caller makes at the same time are as good, and a file in their place is refused', async () => {
  const root = temporaryDirectory();
  const absent = { lstat: () => Promise.resolve(undefined) };
  fs.writeFileSync(path.join(root, 'file'), '');
  await makeDirectories(absent, root, path.join(root, 'a', 'b'));
  await makeDirectories(absent, root, path.join(root, 'a', 'b'));
  expect(fs.readdirSync(path.join(root, 'a'))).toEqual(['b']);
  await expect(makeDirectories(absent, root, path.join(root, 'file'))).rejects.toThrow('directory');
});

it('many files are flushed, one by one, where the program sync is not installed', async () => {
  vi.stubEnv('PATH', '/nowhere');
  onTestFinished(() => void vi.unstubAllEnvs());
  const directory = temporaryDirectory();
  const files = Array.from({ length: 33 }, (_, index) => path.join(directory, String(index)));
  for (const file of files) fs.writeFileSync(file, '');
  expect(await flushAll(files, false)).toBeUndefined();
});
