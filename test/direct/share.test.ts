/** A mounted share: what the contract of all direct transfers does not say. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { DirectRequest } from '../../src/agent/ports/transfer.ts';
import { coveringRoot, shareTransfer } from '../../src/direct/share.ts';
import { systemClock } from '../../src/system/clock.ts';
import { openFilesIn } from '../support/temp-directory.ts';
import { type NamedFile, SHARED, TransferPlace } from './transfers.ts';

afterEach(() => void vi.restoreAllMocks());

const methodOf = (sharedBasepath: string) => ({ ...SHARED, sharedBasepath });

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

/** A place with a share, and with a state and a secret beside it; `~` in a path is its directory. */
function guardedPlace() {
  const place = new TransferPlace();
  const at = (name: string) => path.join(place.directory, name);
  const secret = at('secrets/token');
  fs.mkdirSync(path.dirname(secret));
  fs.writeFileSync(secret, 'a secret');
  fs.mkdirSync(at('state'));
  fs.writeFileSync(at('state/agent.db'), 'a secret');
  place.put('11/a', 'a');
  const guarded = [at('state'), secret, at('not-there-yet')];
  const shareOf = (roots: Record<string, string>) => shareTransfer({ roots, guarded });
  const written = (paths: readonly string[]) => paths.map((each) => each.replace('~', place.directory));
  return { place, at, secret, shareOf, written };
}

const SECRETS = ['token', 'agent.db', 'passwd', 'hostname', 'environ', '11/a', '501/11/a', 'state/agent.db'];

it('what no root covers is not read, whatever the service names, and it is said what to configure', async () => {
  const { place, at, shareOf, written } = guardedPlace();
  const said = async (roots: Record<string, string>, basePath: string) => {
    const fetched = place.fetch(shareOf(roots), methodOf(basePath), SECRETS);
    return await fetched.catch(({ code, message, hint }) => `${code}: ${message} (${hint})`);
  };
  const paths = written([
    ...['~/cluster/jobs/501', '~/state', '~/secrets', '/', '/etc', '/proc/self', '/scratch/../secrets', '//~/secrets'],
    ...['/scratch-more/jobs/501', `/scratch/jobs/..${'/..'.repeat(20)}~/secrets`],
  ]);
  for (const each of paths) expect(await said({ '/scratch': at('cluster') }, each)).toContain('does not cover it');
  for (const each of ['\\\\scratch\\jobs', 'scratch/jobs/501', '/scratch/\0/jobs', '/scratch\n/jobs', ''])
    expect(await said({ '/scratch': at('cluster') }, each)).toContain('the service names no path of a share');
  const name = `/${'x'.repeat(199)}`;
  for (const [given, shown] of Object.entries({ [name]: name, [`${name}y`]: `${name}...` }))
    expect(await said({}, given)).toMatch(
      `config: the service names the share ${shown}, and results.shareRoots does not cover it (`,
    );
  expect(await said({}, name)).toContain('results.shareRoots: {PATH OF THE CLUSTER: PATH OF THIS MACHINE}');
  for (const [root, missing] of Object.entries({ gone: 'gone', cluster: 'cluster/jobs/999' }))
    expect(await said({ '/scratch': at(root) }, '/scratch/jobs/999')).toMatch(
      `local-io: the share ${at(missing)} is not mounted here (mount it`,
    );
  fs.symlinkSync(at('secrets'), at('cluster/jobs/502'));
  expect(await said({ '/scratch': at('cluster') }, '/scratch/jobs/502')).toMatch(
    /leads out of .*cluster, and is not read \(.*name the directory that it leads to/,
  );
  expect(place.files(place.jobDirectory)).toEqual([]);
});

it('the longest root that covers a path is that of its share', () => {
  const roots = { '/': 'all', '/scratch/of/': 'the longest', '/scratch': 'another' };
  expect(coveringRoot('/scratch/of/501', roots)).toEqual({ there: '/scratch/of', here: 'the longest' });
  expect(coveringRoot('/scratch/office', roots)).toMatchObject({ here: 'another' });
  expect(coveringRoot('/', roots)).toEqual({ there: '', here: 'all' });
  expect(coveringRoot('/', { '/scratch': 'another' })).toBeUndefined();
});

it('a root is not read if it leads to files of the machine, a state or a secret, as it is and by a link', async () => {
  const { place, at, shareOf, written } = guardedPlace();
  const roots = ['/', '/etc', '/proc', '/proc/self', '~/state', '~/', '~/secrets', '~/cluster/../secrets'];
  for (const [index, direct] of written(roots).entries()) {
    fs.symlinkSync(direct, at(`link${index}`));
    for (const root of [direct, at(`link${index}`)]) {
      const real = fs.realpathSync(root);
      const led = root === real ? '' : `, which leads to ${real},`;
      await expect(place.fetch(shareOf({ '/scratch': root }), methodOf('/scratch'), SECRETS)).rejects.toMatchObject({
        code: 'config',
        message: expect.stringContaining(`the share ${root}${led} is not read: it `),
        hint: expect.stringContaining('with files of the cluster and nothing else'),
      });
    }
  }
  // A state that is reached by a link is guarded with the directory of the link, too.
  fs.symlinkSync(at('secrets'), at('state-link'));
  for (const root of [at('secrets'), at('')]) {
    const transfer = shareTransfer({ roots: { '/scratch': root }, guarded: [at('state-link')] });
    await expect(place.fetch(transfer, methodOf('/scratch'), ['token'])).rejects.toThrow('is not read: it ');
  }
  expect(place.files(place.jobDirectory)).toEqual([]);
});

it('links and odd files that a job plants lead to nothing beyond the share, are no file only if that is certain, and stop no other', async () => {
  const { place, at, secret, shareOf } = guardedPlace();
  for (const name of ['11/model', '11/stale', '11/unreadable']) place.put(name, 'weights');
  const links = {
    secret,
    relative: path.relative(path.join(place.cluster, '11'), secret),
    through: 'secret',
    process: '/proc/self/environ',
    password: '/etc/passwd',
    device: '/dev/zero',
    neighbour: at('state'),
    // An absolute link is a path of the cluster.
    absolute: '/scratch/jobs/501/11/model',
    twice: 'absolute',
    up: '../11/model',
    folder: '/scratch/jobs/501',
    elsewhere: '/project/model',
    'through-elsewhere': 'elsewhere/model',
    above: '../../../../model',
    stales: 'stale',
    bytes: Buffer.from('model\xff', 'latin1'),
    missing: 'gone',
    'missing-there': '/scratch/jobs/501/11/gone',
    loop: 'loop',
  };
  for (const [name, to] of Object.entries(links)) fs.symlinkSync(to, path.join(place.cluster, '11', name));
  execFileSync('mkfifo', [path.join(place.cluster, '11', 'pipe')]);
  const { lstat } = fs.promises;
  vi.spyOn(fs.promises, 'lstat').mockImplementation(async (of) => {
    if (String(of).endsWith('/stale')) throw Object.assign(new Error('ESTALE: stale'), { code: 'ESTALE' });
    return await lstat(of);
  });
  const { open } = fs.promises;
  vi.spyOn(fs.promises, 'open').mockImplementation(async (...call) => {
    const handle = await open(...call);
    const error = Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', syscall: 'read' });
    if (String(call[0]).endsWith('/unreadable')) handle.read = () => Promise.reject(error);
    return handle;
  });
  const others = ['unreadable', 'neighbour/agent.db', 'pipe', 'folder/11/model', 'folder/11/gone', 'a'];
  const names = [...Object.keys(links), ...others].map((name) => `11/${name}`);
  await place.fetch(shareOf({ '/scratch': at('cluster') }), SHARED, names);
  const came = ['11/absolute', '11/twice', '11/up', '11/folder/11/model'].map((name) => `${name} weights`);
  expect([...place.came].map(([name, content]) => `${name} ${content}`)).toEqual([...came, '11/a a']);
  expect(Object.fromEntries(place.irregular)).toEqual({
    '11/folder': 'a link to a directory',
    '11/missing': 'a link to a missing file',
    '11/missing-there': 'a link to a missing file',
    '11/loop': 'a link to a missing file',
    '11/pipe': 'a named pipe',
  });
});

it('a file that is swapped for a link while it is opened is not read', async () => {
  const { place, at, secret, shareOf } = guardedPlace();
  const file = path.join(place.cluster, '11', 'a');
  const lstat = fs.promises.lstat;
  vi.spyOn(fs.promises, 'lstat').mockImplementation(async (of: fs.PathLike) => {
    const found = await lstat(of);
    if (path.basename(String(of)) === 'a') {
      fs.renameSync(path.dirname(file), `${path.dirname(file)}.aside`);
      fs.symlinkSync(path.dirname(secret), path.dirname(file));
      fs.writeFileSync(path.join(path.dirname(secret), 'a'), 'a secret');
    }
    return found;
  });
  await place.fetch(shareOf({ '/scratch': at('cluster') }), SHARED, ['11/a']);
  expect([...place.came.values()].map(String)).toEqual([]);
  expect(openFilesIn(path.dirname(secret))).toBe(0);
});

describe('the list of a mounted share', () => {
  function setUp(files: Readonly<Record<string, string>>) {
    const place = new TransferPlace();
    for (const [name, content] of Object.entries(files)) place.put(name, content);
    const list = (signal = new AbortController().signal) => transferOf(place).list({ method: SHARED, signal });
    return { place, list, at: (name: string) => path.join(place.cluster, name) };
  }

  it('has all regular files with their sizes, in any directory and by any name, and follows no link', async () => {
    const { list, at } = setUp({ '11/out.dat': 'a result', '11/deep/two\nlines': 'four' });
    // A name that is not UTF-8 is no name here.
    fs.writeFileSync(Buffer.concat([Buffer.from(`${at('11')}/gr`), Buffer.from([0xf6, 0xdf])]), 'x');
    fs.symlinkSync('/etc', at('11/link'));
    const { files, links } = await list();
    const sizes = Object.fromEntries(files.map(({ name, bytes }) => [name, bytes]));
    expect([sizes, links]).toEqual([{ '11/gr\uFFFD\uFFFD': 1, '11/out.dat': 8, '11/deep/two\nlines': 4 }, 1]);
  });

  it.each([
    ['a file', '11/a', false, ['11/deep/b']],
    ['a directory', '11/deep', false, ['11/a']],
    ['a directory for a file', '11/deep', true, ['11/a']],
  ])('leaves out what is removed while it is made: %s', async (_, removed, isFile, left) => {
    const { list, at } = setUp({ '11/a': '', '11/deep/b': '' });
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
    const { place, list } = setUp({ a: '', b: '' });
    await expect(list(AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' });
    vi.spyOn(fs.promises, 'lstat').mockRejectedValueOnce(Object.assign(new Error('EIO'), { code: 'EIO' }));
    await expect(list()).rejects.toThrow('EIO');
    fs.rmSync(place.cluster, { recursive: true });
    fs.writeFileSync(place.cluster, '');
    await expect(list()).rejects.toThrow('ENOTDIR');
  });
});
