/** A mounted share: what happens while it is read. What is read of it: transfers.txt and share.txt. */
import fs from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { DirectRequest } from '../../src/agent/ports/transfer.ts';
import { shareTransfer } from '../../src/direct/share.ts';
import { systemClock } from '../../src/system/clock.ts';
import { openFilesIn } from '../support/temp-directory.ts';
import { type NamedFile, SHARED, TransferPlace } from './place.ts';

afterEach(() => void vi.restoreAllMocks());

const transferOf = (place: TransferPlace, idleMs = 60_000) =>
  shareTransfer({ roots: { '/scratch': path.join(place.directory, 'cluster') }, guarded: [], idleMs });

const fetchShared = (
  place: TransferPlace,
  ...of: [names: readonly string[], more?: Partial<DirectRequest<NamedFile>>]
) => place.fetch(transferOf(place), SHARED, ...of);

/** Each time that bytes are reported, so many milliseconds have passed. */
function passing() {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  return (ms: number) => {
    now += ms;
  };
}

describe('a share whose server does not answer', () => {
  /** Calls of this name do not return until the returned function is called. */
  function hang(name: 'open' | 'lstat' | 'realpath' | 'readdir' | 'read') {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const target = name === 'read' ? 'open' : name;
    const real = fs.promises[target] as (...call: unknown[]) => Promise<unknown>;
    const spy = vi.spyOn(fs.promises, target).mockImplementation((async (...call: unknown[]) => {
      if (name !== 'read' && /cluster/.test(String(call[0]))) await released;
      const found = await real(...call);
      const handle = found as fs.promises.FileHandle;
      const read = name === 'read' ? handle.read.bind(handle) : undefined;
      if (read) handle.read = ((...of: Parameters<typeof read>) => released.then(() => read(...of))) as typeof read;
      return found;
    }) as never);
    return () => {
      spy.mockRestore();
      release();
    };
  }

  const hasNoneOpen = (place: TransferPlace) =>
    vi.waitFor(() => fs.existsSync('/proc/self/fd') && expect(openFilesIn(place.directory)).toBe(0));

  it.each(['open', 'lstat', 'realpath', 'read'] as const)(
    'is given up after its limit, until it answers: %s',
    async (call) => {
      const place = new TransferPlace();
      place.put('11/a', 'a');
      const transfer = transferOf(place, 300);
      const fetched = () => place.fetch(transfer, SHARED, ['11/a', '11/link']);
      fs.symlinkSync('gone', path.join(place.cluster, '11/link'));
      const release = hang(call);
      const error = { code: 'interrupted', message: `the share ${place.directory}/cluster did not answer for 0.3 s` };
      await expect(fetched()).rejects.toMatchObject(error);
      // No further call waits beside that one.
      const called = vi.spyOn(fs.promises, 'realpath').mockClear();
      await expect(fetched()).rejects.toMatchObject(error);
      expect(called).not.toHaveBeenCalled();
      release();
      called.mockRestore();
      await hasNoneOpen(place);
      expect([place.came.size, place.irregular.size, place.files(place.arrival)]).toEqual([0, 0, []]);
      await vi.waitFor(fetched);
      expect([...place.came.keys(), ...place.irregular.keys()]).toEqual(['11/a', '11/link']);
    },
  );

  it('ends a transfer and a list that are stopped', async () => {
    const place = new TransferPlace();
    place.put('11/a', 'a');
    const release = hang('read');
    const { promises } = fs;
    const stop = new AbortController();
    const fetched = fetchShared(place, ['11/a'], { signal: stop.signal });
    await vi.waitFor(() => expect(vi.mocked(promises.open).mock.results.length).toBeGreaterThan(0));
    stop.abort();
    await expect(fetched).rejects.toMatchObject({ code: 'aborted' });
    release();
    await hasNoneOpen(place);
    const releaseList = hang('readdir');
    const list = transferOf(place, 300).list({ method: SHARED, signal: new AbortController().signal });
    await expect(list).rejects.toMatchObject({ code: 'interrupted' });
    releaseList();
  });
});

it('a file that changes while it is read is read up to three times, and comes only whole', async () => {
  const place = new TransferPlace();
  const pass = passing();
  const file = path.join(place.cluster, '11/a');
  place.put('11/b', 'b');
  for (const changes of [2, 3]) {
    place.put('11/a', 'a');
    place.progress.length = 0;
    const onBytes = (bytes: number) => {
      place.progress.push(bytes);
      pass(1_000);
      if (bytes > changes) return;
      fs.writeFileSync(file, String(bytes));
      fs.utimesSync(file, bytes, bytes);
    };
    await fetchShared(place, ['11/a', '11/b'], { onBytes });
    expect(place.progress).toEqual([1, 2, 3, 4]);
    expect(place.came.get('11/a')?.toString()).toBe(changes === 2 ? '2' : undefined);
    expect(place.files(place.arrival)).toEqual([]);
    place.came.clear();
  }
  // Alone after three seconds; nothing is handed over where nothing came.
  expect(place.batches).toEqual([1, 1, 1]);
  await fetchShared(place, ['11/gone']);
  expect(place.batches).toHaveLength(3);
  if (fs.existsSync('/proc/self/fd')) expect(openFilesIn(place.directory)).toBe(0);
});

it('of a file that grows no more is read than it had, so the copy ends, and its limit holds', async () => {
  const place = new TransferPlace();
  const file = path.join(place.cluster, '11/a');
  for (const [maxFileBytes, progress] of [
    [null, [10, 30, 60]],
    [15, [10]],
  ] as const) {
    place.put('11/a', Buffer.alloc(10));
    place.progress.length = 0;
    const onBytes = (bytes: number) => {
      if (place.progress.push(bytes) < 9) fs.appendFileSync(file, Buffer.alloc(10));
    };
    await fetchShared(place, ['11/a'], { onBytes, maxFileBytes });
    expect(place.progress).toEqual(progress);
  }
  expect([[...place.came], place.tooLarge]).toEqual([[], ['11/a']]);
});

it('files of a mounted share keep to the bandwidth together, and are handed over at least every two seconds', async () => {
  const place = new TransferPlace();
  const names = ['11/a', '11/b', '11/c', '11/d', '11/e'];
  for (const name of names) place.put(name, Buffer.alloc(1_500));
  const pass = passing();
  vi.spyOn(systemClock, 'timer').mockImplementation((ms, ended) => {
    pass(ms);
    setImmediate(ended);
    return () => {};
  });
  await fetchShared(place, names, { bytesPerSecond: 1_500 });
  expect([place.batches, [...place.came.keys()]]).toEqual([[2, 2, 1], names]);
  expect(place.progress).toEqual([1_500, 3_000, 4_500, 6_000, 7_500]);
  const onFiles: DirectRequest['onFiles'] = async ([arrival]) => {
    throw new Error(`no room with mode ${(fs.statSync(arrival?.path ?? '').mode & 0o777).toString(8)}`);
  };
  for (const ms of [0, 2_000]) {
    const fetched = fetchShared(place, ['11/a', '11/gone'], { onFiles, onBytes: () => pass(ms) });
    await expect(fetched).rejects.toThrow('no room with mode 600');
  }
});

it('a file that is swapped for a link while it is opened is not read', async () => {
  const place = new TransferPlace();
  place.put('11/a', 'a');
  const secret = path.join(place.directory, 'secrets', 'a');
  fs.mkdirSync(path.dirname(secret));
  const directory = path.join(place.cluster, '11');
  const lstat = fs.promises.lstat;
  vi.spyOn(fs.promises, 'lstat').mockImplementation(async (of: fs.PathLike) => {
    const found = await lstat(of);
    if (path.basename(String(of)) === 'a') {
      fs.renameSync(directory, `${directory}.aside`);
      fs.symlinkSync(path.dirname(secret), directory);
      fs.writeFileSync(secret, 'a secret');
    }
    return found;
  });
  await fetchShared(place, ['11/a']);
  expect([...place.came.values()].map(String)).toEqual([]);
  expect(openFilesIn(path.dirname(secret))).toBe(0);
});

describe('the list of a mounted share', () => {
  function setUp(...files: readonly string[]) {
    const place = new TransferPlace();
    for (const name of files) place.put(name, '');
    const list = (signal = new AbortController().signal) => transferOf(place).list({ method: SHARED, signal });
    return { place, list, at: (name: string) => path.join(place.cluster, name) };
  }

  it.each([
    ['a file', '11/a', false, ['11/deep/b']],
    ['a directory', '11/deep', false, ['11/a']],
    ['a directory for a file', '11/deep', true, ['11/a']],
  ])('leaves out what is removed while it is made: %s', async (_, removed, isFile, left) => {
    const { list, at } = setUp('11/a', '11/deep/b');
    const lstat = vi.spyOn(fs.promises, 'lstat');
    lstat.mockImplementationOnce(async (file) => {
      lstat.mockRestore();
      fs.rmSync(at(removed), { recursive: true });
      if (isFile) fs.writeFileSync(at(removed), '');
      return await fs.promises.lstat(file);
    });
    expect((await list()).files.map(({ name }) => name)).toEqual(left);
  });

  it('is none of a file, where something cannot be read, and after a stop', async () => {
    const { place, list } = setUp('a', 'b');
    await expect(list(AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' });
    vi.spyOn(fs.promises, 'lstat').mockRejectedValueOnce(Object.assign(new Error('EIO'), { code: 'EIO' }));
    await expect(list()).rejects.toThrow('EIO');
    fs.rmSync(place.cluster, { recursive: true });
    fs.writeFileSync(place.cluster, '');
    await expect(list()).rejects.toThrow('ENOTDIR');
  });
});
