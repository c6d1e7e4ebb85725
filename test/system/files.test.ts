import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeDirectories } from '../../src/system/directories.ts';
import {
  AT_ONCE_BYTES,
  DiskReserve,
  EXACT,
  fileCalls,
  type RandomAccessFile,
  stampOf,
  writeAll,
  writeNewFile,
} from '../../src/system/files.ts';
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
async function looks(byDirect: boolean) {
  const place = new ResultsPlace();
  place.restarted({ onNetwork: true, ...(byDirect ? directBy(place, new ModelTransfer(place)) : {}) });
  place.live('stdout', 'live\n');
  const files = { 'stdout.txt': 'live\n', same: 'same', changes: 'before', planted: 'x' };
  for (const [name, content] of Object.entries(files)) place.remote.set(`/11/${name}`, content);
  place.remote.set('/11/large', Buffer.alloc(2 * AT_ONCE_BYTES));
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

it.each([
  ['SOAP', false],
  ['a direct transfer', true],
])('a sync by %s makes no synchronous call on a network file system, where it may never end', async (_, byDirect) => {
  expect(await looks(byDirect)).toEqual(new Set());
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
    const file = path.join(directory, 'new');
    // It comes in one buffer, again and again.
    const piece = Buffer.alloc(AT_ONCE_BYTES / 2);
    const make = (pieces: number, error?: Error) =>
      writeNewFile(calls, file, 0o640, async (write) => {
        for (let number = 0; number < pieces; number++) await write(piece.fill(number));
        if (error !== undefined) throw error;
      });
    const away = new Error('the server went away');
    for (const pieces of [1, 3]) {
      await expect(make(pieces, away)).rejects.toBe(away);
      expect([fs.readdirSync(directory), openFilesIn(directory)]).toEqual([[], 0]);
    }
    for (const pieces of [0, 2, 3]) {
      fs.rmSync(file, { force: true });
      const bytes = Buffer.concat(Array.from({ length: pieces }, (__, number) => Buffer.from(piece.fill(number))));
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      expect(await make(pieces)).toEqual({ bytes: bytes.length, sha256 });
      expect([bytes.equals(fs.readFileSync(file)), fs.statSync(file).mode & 0o777]).toEqual([true, 0o640]);
    }
    await expect(make(4)).rejects.toMatchObject({ code: 'EEXIST' });
    expect([fs.statSync(file).size, openFilesIn(directory)]).toEqual([3 * piece.length, 0]);
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

/** Files whose bytes go nowhere, and what is done with each; the first call of a kind may fail. */
function slowDisk(failing?: 'write' | 'datasync') {
  const done: string[] = [];
  const work = (what: string) => async () => {
    done.push(what);
    await new Promise((resolve) => setImmediate(resolve));
    done.push(`${what} ends`);
    if (what !== failing) return;
    failing = undefined;
    throw Object.assign(new Error(`EIO: i/o error, ${what}`), { code: 'EIO', syscall: what });
  };
  const file = {
    write: async (_: Buffer, __: number, length: number) => {
      await work('write')();
      return { bytesWritten: length };
    },
    datasync: work('datasync'),
    close: async () => void done.push('close'),
  } as Partial<RandomAccessFile> as fs.promises.FileHandle;
  onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(fs.promises, 'open').mockImplementation(async () => file);
  return done;
}

it('a new file is flushed after each 128 MiB on the way', async () => {
  const done = slowDisk();
  const piece = Buffer.alloc(64 * 1024 * 1024);
  const { bytes } = await writeNewFile(fileCalls(true), '/absent/new', 0o640, async (write) => {
    for (let pieces = 0; pieces < 5; pieces++) await write(piece);
  });
  expect(bytes).toBe(5 * piece.length);
  // The bytes of the next piece are sent meanwhile.
  expect(done.filter((what) => !/datasync/.test(what))).toEqual([
    ...Array(5).fill(['write', 'write ends']).flat(),
    'close',
  ]);
  expect(done.filter((what) => /datasync/.test(what))).toEqual(Array(2).fill(['datasync', 'datasync ends']).flat());
  expect(done.indexOf('datasync')).toBe(4);
});

it.each([
  ['a piece fails', 'write', 1],
  ['a flush fails', 'datasync', 1],
  ['the first of two flushes fails', 'datasync', 2],
  ['it ends within a piece', undefined, 1],
] as const)('a new file is closed after its last piece when %s, and the error names it', async (_, failing, pieces) => {
  const done = slowDisk(failing);
  const away = new Error('the server went away');
  const failed = writeNewFile(fileCalls(true), '/absent/new', 0o640, async (write) => {
    for (let piece = 0; piece < pieces; piece++) {
      const written = write(Buffer.alloc(failing === undefined ? AT_ONCE_BYTES + 1 : 128 * 1024 * 1024));
      if (failing === undefined) await Promise.reject(away);
      await written;
    }
  });
  const named = { code: 'local-io', message: expect.stringContaining('/absent/new') };
  await (failing === undefined ? expect(failed).rejects.toBe(away) : expect(failed).rejects.toMatchObject(named));
  expect([done.includes(`${failing ?? 'write'} ends`), done.at(-1)]).toEqual([true, 'close']);
});

it('the stamp of a file is another one with its device, inode, length, and times', () => {
  const stat = { dev: 1n, ino: 2n, size: 3n, mtimeNs: 4n, ctimeNs: 5n } as fs.BigIntStats;
  const stamps = ['dev', 'ino', 'size', 'mtimeNs', 'ctimeNs'].map((name) => stampOf({ ...stat, [name]: 9n }));
  expect(new Set([...stamps, stampOf(stat), stampOf(stat), stampOf(undefined)]).size).toBe(7);
});

it('a reserve on a disk is kept to the byte; without one, nothing is asked', async () => {
  const asked: string[] = [];
  const statfs = (directory: string) => {
    asked.push(directory);
    return { bavail: 3, bsize: 4_096 };
  };
  const reserve = new DiskReserve('/mirror', 4_096, { statfs });
  expect([await reserve.hasRoomFor(8_192), await reserve.hasRoomFor(8_193)]).toEqual([true, false]);
  await reserve.require(8_192);
  const message = 'less than mirror.minFreeBytes would stay free in /mirror';
  const hint = 'free some space, or lower mirror.minFreeBytes; the agent goes on by itself';
  await expect(reserve.require(8_193)).rejects.toMatchObject({ code: 'disk-full', message, hint });
  expect(asked).toEqual(Array(4).fill('/mirror'));
  expect(await new DiskReserve('/mirror', 0, { statfs }).hasRoomFor(1e15)).toBe(true);
  expect(asked).toHaveLength(4);
});
