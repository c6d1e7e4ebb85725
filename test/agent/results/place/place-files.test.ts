/** Files that arrived together: they are on the disk before any of them has its name. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ALONE } from '../../../../src/agent/ownership.ts';
import { digestOf, headOf } from '../../../../src/agent/results/place/temporary-files.ts';
import type { ResultsOptions } from '../../../../src/agent/results/results.ts';
import { JobtailError } from '../../../../src/errors.ts';
import { unprovenIn } from '../../../../src/proven.ts';
import { isPartialName } from '../../../../src/safe-names.ts';
import { type FileCalls, fileCalls } from '../../../../src/system/files.ts';
import { temporaryDirectory } from '../../../support/temp-directory.ts';
import { directBy, JOB, ModelTransfer, ResultsPlace } from '../place.ts';

/** A job of so many results that are handed over together; `syncs` holds what has its name whenever something is flushed. */
function placeOf(count: number, context: Partial<ResultsOptions> = {}) {
  const place = new ResultsPlace();
  place.restarted({ ...directBy(place, new ModelTransfer(place)), ...context });
  const names = Array.from({ length: count }, (_, index) => `f${String(index).padStart(3, '0')}`);
  for (const name of names) place.remote.set(`/11/${name}`, name);
  return { place, tree: names.map((name) => `11/${name}`) };
}

/** Watches the flushes of this process, each with the path of what is flushed and the files that have names by then. */
async function watchFlushes(place: ResultsPlace, fails: (file: string) => boolean = () => false) {
  const handle = await open(place.directory);
  const prototype: { sync(): Promise<void> } = Object.getPrototypeOf(handle);
  await handle.close();
  const { sync } = prototype;
  const { fsync } = fs;
  const flushes: { readonly file: string; readonly named: number }[] = [];
  const failureOf = (fd: number) => {
    const file = fs.readlinkSync(`/proc/self/fd/${fd}`);
    flushes.push({ file, named: place.tree().length });
    return fails(file) ? Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO' }) : undefined;
  };
  vi.spyOn(prototype, 'sync').mockImplementation(async function flush(this: fs.promises.FileHandle) {
    const failure = failureOf(this.fd);
    if (failure !== undefined) throw failure;
    await sync.call(this);
  });
  vi.spyOn(fs, 'fsync').mockImplementation((fd, callback) => {
    const failure = failureOf(fd);
    if (failure === undefined) fsync(fd, callback);
    else callback(failure);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  return flushes;
}

const isArrival = (file: string) => path.basename(path.dirname(file)) === '.direct';

describe('files that arrived together', () => {
  it('are flushed, each, before any of them has its name', async () => {
    const { place, tree } = placeOf(20);
    const flushes = await watchFlushes(place);
    await place.sync();
    expect(place.tree()).toEqual(tree);
    const arrivals = flushes.filter(({ file }) => isArrival(file));
    expect(new Set(arrivals.map(({ file }) => file)).size).toBe(20);
    expect(arrivals.map(({ named }) => named)).toEqual(Array.from({ length: 20 }, () => 0));
    // Then the directory that holds the names, when all of them are there.
    expect(flushes).toContainEqual({ file: place.path('11'), named: 20 });
  });

  it('are recorded after their directory is flushed, also where a kill left them with their names', async () => {
    const { place, tree } = placeOf(1);
    fs.mkdirSync(place.path('11'), { recursive: true });
    fs.writeFileSync(place.path('11', 'f000'), 'f000');
    const flushes = await watchFlushes(place);
    expect(await place.sync()).toMatchObject({ fetched: 1 });
    expect(place.tree()).toEqual(tree);
    expect(flushes.map(({ file }) => file)).toEqual([place.path('11')]);
  });

  it('get no name if they cannot be flushed, whichever way they come', async () => {
    const { place } = placeOf(20);
    const flushes = await watchFlushes(place, (file) => fs.statSync(file).isFile());
    await place.sync();
    expect(flushes.filter(({ file }) => isArrival(file)).length).toBeGreaterThan(0);
    expect(place.tree()).toEqual([]);
    expect(place.row('/11/f000')?.state).toBe('failed');
  });
});

describe('a file that the file system here can never hold', () => {
  const refuse = (call: 'renameSync' | 'lstatSync', code: string) => {
    const real = fs[call] as (...args: unknown[]) => unknown;
    vi.spyOn(fs, call).mockImplementation(((...args: unknown[]) => {
      const syscall = call.replace('Sync', '');
      if (args.some((at) => String(at).endsWith('a: ')))
        throw Object.assign(new Error(`${code}: refused, ${syscall} '${args[0]}'`), { code, syscall, path: args[0] });
      return real(...args);
    }) as never);
    onTestFinished(() => void vi.restoreAllMocks());
  };

  it.each([
    ['renameSync', 'EINVAL'],
    ['lstatSync', 'ENAMETOOLONG'],
    ['renameSync', 'EILSEQ'],
  ] as const)('because of its name is left out, and tried once a day: %s %s', async (call, code) => {
    const place = new ResultsPlace();
    refuse(call, code);
    place.remote.set('/11/a: ', 'a');
    place.remote.set('/11/b', 'b');
    expect(await place.sync()).toMatchObject({ fetched: 1, failed: 0, refused: 1 });
    const reason = `the disk of this machine refuses its name (${call.replace('Sync', '')} ${code}); tried once a day`;
    expect(place.row('/11/a: ')).toMatchObject({ state: 'refused', reason, intervalMs: 86_400_000 });
    expect(place.tree()).toEqual(['11/b']);
    // It is a file of the job, and not here: the job is not proven, and its end is not delayed by it.
    expect(await place.sync(true)).toMatchObject({ failed: 0, refused: 1 });
    expect(unprovenIn(place.store, JOB)).toContain('1 result: not fetched, or refused');
  });
});

describe('a file system without modes or links', () => {
  const unsupported = (call: string, code = 'EPERM') => Object.assign(new Error(`${code}: ${call}`), { code });

  it.each([
    ...['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].map((code) => [code, { fetched: 1, failed: 0 }] as const),
    // No other failure is taken for that.
    ['EIO', { fetched: 0, failed: 1 }],
  ] as const)('has the results all the same: %s', async (code, outcome) => {
    const place = new ResultsPlace();
    vi.spyOn(fs, 'chmodSync').mockImplementation(() => {
      throw unsupported('chmod', code);
    });
    onTestFinished(() => void vi.restoreAllMocks());
    place.remote.set('/11/a', 'a');
    expect(await place.sync()).toMatchObject(outcome);
  });

  it.each([false, true])('has copies of the live files among the results, on the network: %s', async (onNetwork) => {
    const place = new ResultsPlace({ onNetwork });
    vi.spyOn(fs.promises, 'symlink').mockRejectedValue(unsupported('symlink'));
    onTestFinished(() => void vi.restoreAllMocks());
    place.live('stdout', 'live\n', { listedName: '/11/stdout.txt' });
    place.live('stderr', 'other\n');
    place.remote.set('/11/stdout.txt', 'live\n');
    place.remote.set('/11/stderr.txt', 'other\n');
    expect(await place.sync(true)).toMatchObject({ fetched: 2, failed: 0 });
    expect(place.tree()).toEqual(['11/stderr.txt', '11/stdout.txt']);
    expect(place.row('/11/stdout.txt')).toMatchObject({ state: 'synced', live: null, bytes: 5 });
    place.now += 60_000;
    expect(await place.sync()).toMatchObject({ fetched: 2, changed: 0, failed: 0 });
  });
});

it.each(['a result', 'a link to a mirror'])('%s gets no name once another agent owns the job', async (what) => {
  const superseded = new JobtailError('superseded', 'another agent owns the job');
  const names: string[] = [];
  const requireLease = () => {
    names.push(...fs.readdirSync(place.path('11')));
    throw superseded;
  };
  const place = new ResultsPlace({ ownership: { ...ALONE, requireLease } });
  if (what !== 'a result') place.live('stdout', 'live\n');
  place.remote.set('/11/stdout.txt', 'live\n');
  await expect(place.sync(true)).rejects.toBe(superseded);
  // As a start after a kill knows it.
  expect(names.map(isPartialName)).toEqual([true]);
  expect(place.tree()).toEqual([]);
});

/** Small files are read at once, large ones in pieces. */
it.each([5, 3_000_000])(
  'a file of %i bytes has the digest and the first bytes that are read, also if it changes',
  async (size) => {
    const content = Buffer.alloc(size, 'a result\n');
    const sha256 = (bytes: Buffer) => ({
      bytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    });
    const directory = temporaryDirectory();
    const file = path.join(directory, 'file');
    fs.writeFileSync(file, content);
    fs.symlinkSync(file, `${file}.link`);
    const calls = fileCalls(true);
    const other = Buffer.alloc(size, 'another one\n');
    fs.writeFileSync(`${file}.other`, other);
    const atOnce = await Promise.all([file, `${file}.other`].map((name) => digestOf(calls, name)));
    expect(atOnce).toEqual([sha256(content), sha256(other)]);
    for (const end of [3, 2_500_000])
      expect(await digestOf(calls, file, end)).toEqual(sha256(content.subarray(0, end)));
    for (const max of [4, 1_024]) expect(await headOf(calls, file, max)).toEqual(content.subarray(0, max));
    for (const name of [`${file}.link`, `${file}.missing`, directory])
      expect([await digestOf(calls, name), await headOf(calls, name, 4)]).toEqual([undefined, undefined]);
    // Its size was read before it lost bytes, or got them.
    for (const sizeBefore of [size + 2, size - 2]) {
      const open: FileCalls['open'] = async (...args) => {
        const handle = await calls.open(...args);
        const stat = async () =>
          Object.assign(await fs.promises.stat(file, { bigint: true }), { size: BigInt(sizeBefore) });
        return { ...handle, stat, read: handle.read.bind(handle), close: handle.close.bind(handle) };
      };
      expect(await digestOf({ ...calls, open }, file)).toEqual(sha256(content));
      expect((await headOf({ ...calls, open }, file, 10_000_000))?.equals(content.subarray(0, sizeBefore))).toBe(true);
    }
  },
);
