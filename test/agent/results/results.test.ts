import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { isPartialName, partialName } from '../../../src/safe-names.ts';
import { directBy, JOB, ModelTransfer, OPTIONS, ResultsPlace } from './place.ts';

const MINUTE_MS = 60_000;

describe('what is fetched', () => {
  it('has one row, whatever the way in which the server writes its path', async () => {
    const place = new ResultsPlace();
    await place.sync();
    expect(fs.existsSync(place.path()), 'nothing is listed').toBe(false);
    place.remote.set('11/out//a.dat', 'same');
    place.remote.set('11///gone', 'gone');
    await place.sync();
    for (const name of ['/11/out/a.dat', '11/out//a.dat']) {
      place.remote.files.clear();
      place.remote.set(name, 'same');
      place.now += MINUTE_MS;
      expect(await place.sync()).toMatchObject({ listed: 1, fetched: 1, failed: 0 });
      expect(['11///gone', '/11/out/a.dat', '11/out//a.dat'].filter((one) => place.row(one) !== undefined)).toEqual([
        '11///gone',
        name,
      ]);
      expect(place.row(name)?.state).toBe('synced');
    }
  });

  it('is fetched at intervals that stretch while it goes on changing; after a quiet time they begin anew', async () => {
    const place = new ResultsPlace();
    const begin = place.now;
    const looksAt = async (from: number, to: number, content: (minute: number) => string) => {
      const looks: number[] = [];
      for (let minute = from; minute <= to; minute++) {
        place.now = begin + minute * MINUTE_MS;
        place.remote.set('/11/log', content(minute));
        place.remote.downloads.length = 0;
        await place.sync();
        if (place.remote.downloads.length > 0) looks.push(minute);
      }
      return looks;
    };
    expect(await looksAt(0, 200, (minute) => `line ${minute}`)).toEqual([0, 1, 2, 4, 8, 16, 32, 64, 124, 184]);
    expect(place.row('/11/log')?.state).toBe('in-flux');
    expect(await looksAt(201, 310, () => 'quiet')).toEqual([244, 304]);
    expect(place.row('/11/log')?.state).toBe('synced');
    expect(await looksAt(311, 430, (minute) => `line ${minute}`)).toEqual([364, 365, 367, 371, 379, 395, 427]);
  });

  it('is fetched where the clock was set back since it was fetched', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'a');
    await place.sync();
    for (const [setBackMs, fetched] of [
      [0, 0],
      [1, 1],
    ] as const) {
      place.now -= setBackMs;
      place.remote.downloads.length = 0;
      await place.sync();
      expect([setBackMs, place.remote.downloads.length]).toEqual([setBackMs, fetched]);
    }
  });

  it('is restored where another process changed or removed it here', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'right');
    place.remote.set('/11/b', 'right');
    await place.sync();
    fs.writeFileSync(place.path('11', 'a'), 'wrong');
    fs.rmSync(place.path('11', 'b'));
    expect(await place.sync(true)).toMatchObject({ fetched: 2, changed: 2 });
    expect([place.read('11', 'a'), place.read('11', 'b')]).toEqual(['right', 'right']);
  });

  it('is what the patterns include and do not exclude, upper and lower case apart; a change of them counts', async () => {
    const patterns = { include: ['*.dat', 'logs/'], exclude: ['tmp/', 'secret*'] };
    const place = new ResultsPlace({ rules: { ...OPTIONS, ...patterns } });
    const names = ['/11/a.dat', '/11/A.DAT', '/11/tmp/b.dat', '/11/logs/x/y', '/11/secret.dat', '/11/c.txt'];
    for (const name of names) place.remote.set(name, 'x');
    await place.sync(true);
    expect(place.tree()).toEqual(['11/a.dat', '11/logs/x/y']);
    expect(place.row('/11/c.txt')).toMatchObject({ state: 'left-out', reason: 'results.include does not name it' });
    expect(place.row('/11/secret.dat')).toMatchObject({ state: 'left-out', reason: 'results.exclude names it' });
    expect(place.store.results.counts(JOB)).toMatchObject({ listed: 6, synced: 2, leftOut: 4, failed: 0 });
    // What is passed over as before writes nothing.
    const saved = vi.spyOn(place.store.results, 'saveAll');
    await place.sync();
    expect(saved).not.toHaveBeenCalled();
    place.restarted();
    expect(await place.sync()).toMatchObject({ leftOut: 0 });
    expect(place.tree()).toHaveLength(6);
  });

  it.each([
    [['/sub/'], ['11/sub/a', '11/sub/deep/b']],
    [['sub/**'], ['11/sub/a', '11/sub/deep/b']],
    [['/11/sub/a'], ['11/sub/a']],
    [['**/deep/*'], ['11/sub/deep/b']],
    [['/c', '!/11/c'], []],
    [['a', '!sub/a'], []],
  ])('is what %j includes, by the whole path and by the path below the task', async (include, expected) => {
    const place = new ResultsPlace({ rules: { ...OPTIONS, include } });
    for (const name of ['/11/sub/a', '/11/sub/deep/b', '/11/c']) place.remote.set(name, 'x');
    await place.sync(true);
    expect(place.tree()).toEqual(expected);
    const excluding = new ResultsPlace({ rules: { ...OPTIONS, exclude: include } });
    for (const name of ['/11/sub/a', '/11/sub/deep/b', '/11/c']) excluding.remote.set(name, 'x');
    await excluding.sync(true);
    const rest = ['11/c', '11/sub/a', '11/sub/deep/b'].filter((file) => !expected.includes(file));
    expect(excluding.tree()).toEqual(rest);
  });

  it('is no larger than maxFileBytes, and named with its reason if it is', async () => {
    const place = new ResultsPlace({ rules: { ...OPTIONS, maxFileBytes: 1500 } });
    place.remote.set('/11/small', Buffer.alloc(1500));
    place.remote.set('/11/large', Buffer.alloc(1501));
    expect(await place.sync()).toMatchObject({ fetched: 1, failed: 0, leftOut: 1 });
    expect(place.tree()).toEqual(['11/small']);
    expect(place.row('/11/large')).toMatchObject({
      state: 'left-out',
      reason: 'larger than results.maxFileBytes (1500 bytes)',
    });
    // Nothing is downloaded to find the same again.
    place.remote.downloads.length = 0;
    await place.sync(true);
    expect(place.remote.downloads).toEqual(['/11/small']);
    place.remote.set('/11/large', Buffer.alloc(3));
    place.remote.set('/11/larger', Buffer.alloc(1502));
    place.now += 2 * MINUTE_MS;
    await place.sync();
    expect(place.row('/11/large')).toMatchObject({ state: 'synced', bytes: 3 });
    // With a limit raised since, a complete pass does not wait for the interval.
    place.restarted();
    await place.sync(true);
    expect(place.row('/11/larger')).toMatchObject({ state: 'synced', bytes: 1502 });
  });

  it('leaves the reserve of the disk alone', async () => {
    const place = new ResultsPlace({ minFreeBytes: Number.MAX_SAFE_INTEGER });
    place.remote.set('/11/a', 'a');
    expect(await place.sync()).toMatchObject({ fetched: 0, failed: 1, leftOut: 0 });
    expect(place.remote.downloads).toEqual([]);
    expect(place.row('/11/a')).toMatchObject({
      state: 'failed',
      reason: `less than mirror.minFreeBytes would stay free in ${place.mirror}`,
    });
    place.restarted();
    place.now += 2 * MINUTE_MS;
    expect(await place.sync()).toMatchObject({ fetched: 1 });
  });

  it('waits for its turn where the bandwidth is limited', async () => {
    const place = new ResultsPlace({ rules: { ...OPTIONS, bandwidthLimit: 10_000 } });
    let waitedMs = 0;
    place.onTimer = (delayMs) => {
      waitedMs += delayMs;
    };
    place.remote.set('/11/a', Buffer.alloc(20_000));
    await place.sync();
    expect(waitedMs).toBeCloseTo(2_000, 0);
  });

  it('reports how many of its bytes have arrived, while they arrive', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/<b>', Buffer.alloc(2500));
    place.remote.set('/__proto__', Buffer.alloc(1500));
    const arriving = new Set<string>();
    place.remote.onPiece = () => {
      arriving.add(JSON.stringify(place.store.resultSyncs.get(JOB)?.arriving));
      // Progress is saved each second.
      place.now += 1_000;
    };
    await place.sync();
    const texts = [...arriving].filter((text) => text !== '[]');
    expect(texts).toContain('[["/11/<b>",2000]]');
    expect(texts).toContain('[["/__proto__",1000]]');
    expect(place.store.resultSyncs.get(JOB)?.arriving).toEqual([]);
  });

  it('comes several at a time, if that is allowed', async () => {
    const place = new ResultsPlace({ parallel: 3 });
    for (let number = 0; number < 20; number++) place.remote.set(`/11/${number}`, Buffer.alloc(5000, number));
    let release = () => {};
    const threeRun = new Promise<void>((resolve) => {
      release = resolve;
    });
    place.remote.onPiece = () => {
      if (place.remote.running === 3) release();
      return threeRun;
    };
    await place.sync();
    expect(place.remote.maxAtATime).toBe(3);
    expect(place.tree()).toHaveLength(20);
  });
});

describe('a file that fails', () => {
  it.each(['interrupted', 'timeout', 'unavailable'] as const)(
    'with %s once is one file, three times in a row the service',
    async (code) => {
      const place = new ResultsPlace();
      for (const name of ['/1', '/2', '/3', '/4']) place.remote.set(name, name);
      place.remote.files.set('/2', new JobtailError(code, 'broken'));
      expect(await place.sync()).toMatchObject({ fetched: 3, failed: 1 });
      for (const name of ['/1', '/2', '/3', '/4']) place.remote.files.set(name, new JobtailError(code, 'broken'));
      await expect(place.sync(true)).rejects.toMatchObject({ code });
    },
  );

  it('is one of three in a row only if none between them comes', async () => {
    const place = new ResultsPlace();
    const broken = new JobtailError('http-status', 'broken');
    for (const name of ['/1', '/2', '/3', '/4']) place.remote.files.set(name, name === '/3' ? Buffer.from('') : broken);
    expect(await place.sync()).toMatchObject({ fetched: 1, failed: 3 });
  });

  it.each(['session-lost', 'sign-in-refused', 'unreachable', 'rate-limited'] as const)(
    'with %s ends the look, and what came before is kept',
    async (code) => {
      const place = new ResultsPlace();
      place.remote.set('/1', 'one');
      place.remote.files.set('/2', new JobtailError(code, 'not now'));
      place.remote.set('/3', 'three');
      await expect(place.sync()).rejects.toMatchObject({ code });
      expect(place.row('/1')?.state).toBe('synced');
      expect(place.remote.downloads).toEqual(['/1', '/2']);
    },
  );

  it('ends the look with its own error, whatever becomes of the ledger then; the look is over either way', async () => {
    const place = new ResultsPlace();
    place.remote.set('/1', 'one');
    vi.spyOn(place.store.results, 'saveAll').mockImplementation((rows) => {
      if (rows.some(({ state }) => state === 'synced')) throw new JobtailError('store', 'the disk is full');
    });
    onTestFinished(() => void vi.restoreAllMocks());
    await expect(place.sync()).rejects.toMatchObject({ code: 'store' });
    expect(place.store.resultSyncs.get(JOB)).toMatchObject({ wanted: 1, endedAt: place.now });
    place.remote.files.set('/2', new JobtailError('unreachable', 'not now'));
    place.now += MINUTE_MS;
    await expect(place.sync()).rejects.toMatchObject({ code: 'unreachable' });
    expect(place.store.resultSyncs.get(JOB)).toMatchObject({ wanted: 2, endedAt: place.now });
  });

  it('ends at once when it is stopped, and waits for the write that is under way', async () => {
    const place = new ResultsPlace({ parallel: 2 });
    for (const name of ['/1', '/2', '/3']) place.remote.set(name, Buffer.alloc(5000));
    const stop = new AbortController();
    place.remote.onPiece = () => stop.abort();
    await expect(place.sync(true, stop.signal)).rejects.toMatchObject({ code: 'aborted' });
    expect(place.tree()).toEqual([]);
    expect(place.row('/1')?.state).toBe('listed');
  });
});

describe('a file that is listed no more', () => {
  it('stays here with its row, as it was; where it comes back it is looked at again, and is no change', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'a');
    place.remote.set('/11/b', 'b');
    await place.sync();
    const before = place.row('/11/a');
    place.remote.files.clear();
    expect(await place.sync(true)).toMatchObject({ listed: 0, fetched: 0, failed: 0 });
    expect(place.tree()).toEqual(['11/a', '11/b']);
    expect(place.row('/11/a')).toEqual(before);
    expect(place.store.results.counts(JOB)).toMatchObject({ listed: 2, synced: 2, failed: 0, bytes: 2 });
    place.remote.set('/11/a', 'a');
    place.now += MINUTE_MS;
    expect(await place.sync()).toMatchObject({ listed: 1, fetched: 1, changed: 0 });
    expect(place.store.results.counts(JOB)).toMatchObject({ listed: 2, synced: 2 });
  });

  it('has failed no more: what is here of it is good, and of what is not here nothing is said', async () => {
    const place = new ResultsPlace({ rules: { ...OPTIONS, maxFileBytes: 5 } });
    for (const name of ['/11/here', '/11/grown', '/11/never', '/11/large']) place.remote.set(name, 'x');
    place.remote.set('/11/large', 'too large');
    place.remote.files.set('/11/never', new JobtailError('fault', 'no access'));
    await place.sync();
    place.remote.files.set('/11/here', new JobtailError('fault', 'no access'));
    place.remote.set('/11/grown', 'too large');
    expect(await place.sync(true)).toMatchObject({ failed: 2, leftOut: 2 });
    place.remote.files.clear();
    // The file system of the cluster may be away: with nothing listed, nothing has become good.
    const before = [...place.store.results.ofJob(JOB)].filter(({ state }) => state === 'failed');
    const { listings } = place.remote;
    const nothing = { listed: 0, fetched: 0, changed: 0, failed: 0, refused: 0, leftOut: 0, bytes: 0, tookMs: 0 };
    expect(await place.sync()).toEqual(nothing);
    for (const isFinal of [false, true]) await place.sync(isFinal);
    // It is believed from the second time on.
    expect(place.remote.listings - listings).toBe(3);
    expect([...place.store.results.ofJob(JOB)].filter(({ state }) => state === 'failed')).toEqual(before);
    place.remote.set('/11/new', 'y');
    expect(await place.sync()).toMatchObject({ failed: 0, refused: 0, leftOut: 0 });
    expect([...place.store.results.ofJob(JOB)].map(({ name, state, reason }) => [name, state, reason])).toEqual([
      ['/11/grown', 'synced', null],
      ['/11/here', 'synced', null],
      ['/11/new', 'synced', null],
    ]);
    expect(place.store.results.notSynced(JOB, 10)).toEqual([]);
  });

  it('for a moment, at the end of its job, has not become good by that, and keeps its good copy', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'a');
    await place.sync();
    place.remote.files.set('/11/a', new JobtailError('fault', 'no\u001B[31m access'));
    await place.sync(true);
    expect(place.read('11', 'a')).toBe('a');
    const list = place.remote.listChangedFiles.bind(place.remote);
    place.remote.listChangedFiles = async () => {
      place.remote.listChangedFiles = list;
      return [];
    };
    expect(await place.sync(true)).toMatchObject({ listed: 1, failed: 1 });
    expect(place.row('/11/a')).toMatchObject({ state: 'failed', reason: 'no\\u{001B}[31m access', bytes: 1 });
  });

  it('is not gone by one empty list, also after another one, but by two in a row', async () => {
    const place = new ResultsPlace();
    for (const text of ['a', 'b']) {
      place.remote.set('/11/a', text);
      place.now += MINUTE_MS;
      await place.sync();
    }
    const states: (string | undefined)[] = [];
    for (const isListed of [false, true, false, false]) {
      if (isListed) place.remote.set('/11/a', 'b');
      else place.remote.files.clear();
      await place.sync();
      states.push(place.row('/11/a')?.state);
    }
    expect(states).toEqual(['in-flux', 'in-flux', 'in-flux', 'synced']);
    // A complete pass requests it again after five seconds.
    place.remote.set('/11/a', 'b');
    await place.sync();
    place.remote.files.clear();
    const waits: number[] = [];
    place.onTimer = (delayMs) => void waits.push(delayMs);
    const { listings } = place.remote;
    await place.sync(true);
    expect([waits, place.remote.listings - listings]).toEqual([[5_000], 2]);
  });

  it('makes room: its link may stand under another name, and its path be a directory', async () => {
    const place = new ResultsPlace();
    place.live('stdout', 'live\n', { listedName: '/11/stdout.txt' });
    place.remote.set('/11/stdout.txt', 'live\n');
    place.remote.set('/11/refused/..', 'x');
    await place.sync();
    place.remote.files.clear();
    place.remote.set('/12/stdout.txt', 'live\n');
    expect(await place.sync(true)).toMatchObject({ failed: 0, refused: 0 });
    place.now += MINUTE_MS;
    await place.sync();
    expect(place.row('/12/stdout.txt')).toMatchObject({ state: 'linked', live: '9001/stdout' });
    expect(place.row('/11/stdout.txt')).toMatchObject({ state: 'linked' });
    expect(place.store.results.counts(JOB)).toMatchObject({ listed: 2, synced: 2, linked: 2 });
  });
});

it('names that are passed over have a hundred examples of each reason, and are counted; one that is wanted from now on is a result', async () => {
  const patterns = { include: ['*.dat'], exclude: ['tmp/'] };
  const place = new ResultsPlace({ rules: { ...OPTIONS, ...patterns } });
  const names = (prefix: string, suffix: string) => Array.from({ length: 150 }, (_, at) => `${prefix}${at}${suffix}`);
  place.remote.listedToo = [...names('/11/../', ''), ...names('/11/\\', ''), ...names('/tmp/', '.dat')];
  for (const name of names('/11/', '.txt')) place.remote.set(name, 'text');
  expect(await place.sync()).toMatchObject({ listed: 600, fetched: 0, refused: 300, leftOut: 300 });
  expect([...place.store.results.ofJob(JOB)]).toHaveLength(400);
  expect(place.store.results.counts(JOB)).toMatchObject({ listed: 600, refused: 300, failed: 300, leftOut: 300 });
  expect(place.reported).toEqual([expect.stringMatching(/^300 refused: \/11\/\.\.\/0: .*; \/11\/\.\.\/1: /)]);
  // What the configuration leaves out is none of them.
  expect(place.reported[0]).not.toMatch(/\/tmp\/|\.txt/);
  place.restarted();
  place.remote.listedToo = names('/11/../', '').slice(20);
  // More rows than are saved at once.
  for (let at = 0; at < 500; at++) place.remote.set(`/11/more/${at}`, 'text');
  // Others of the same ones are examples now.
  expect(await place.sync()).toMatchObject({ listed: 780, fetched: 650, refused: 130, leftOut: 0 });
  expect(place.store.results.counts(JOB)).toMatchObject({ listed: 780, synced: 650, refused: 130, leftOut: 0 });
  // Both have the same row.
  place.remote.listedToo = ['y', 'z'].map((end) => `/11/${'x'.repeat(3_000)}${end}`);
  expect(await place.sync()).toMatchObject({ listed: 652, refused: 2 });
  expect(place.store.results.counts(JOB)).toMatchObject({ listed: 652, synced: 650, refused: 2 });
  place.remote.listedToo = [];
  expect(await place.sync()).toMatchObject({ listed: 650, refused: 0 });
  expect(place.store.results.counts(JOB)).toMatchObject({ listed: 650, synced: 650, failed: 0, bytes: 2_600 });
  // What was fetched and is left out from now on is an example, or is counted only.
  place.restarted({ rules: { ...OPTIONS, exclude: ['*.txt'] } });
  expect(await place.sync()).toMatchObject({ listed: 650, refused: 0, leftOut: 150 });
  expect(place.store.results.counts(JOB)).toMatchObject({ listed: 650, synced: 500, leftOut: 150 });
  expect([...place.store.results.ofJob(JOB)]).toHaveLength(600);
});

it('what a kill leaves behind is cleared at the first look of the next process', async () => {
  const place = new ResultsPlace();
  place.remote.set('/11/sub/a', 'a');
  await place.sync();
  const left = place.path('11', 'sub', partialName('0123456789abcdef'));
  fs.writeFileSync(left, 'half');
  fs.symlinkSync('/etc/passwd', place.path('11', partialName('fedcba9876543210')));
  const outside = path.join(place.directory, 'outside');
  fs.mkdirSync(outside);
  fs.writeFileSync(path.join(outside, partialName('0123456789abcdef')), 'not ours');
  fs.symlinkSync(outside, place.path('11', 'planted'));
  const staging = path.join(path.dirname(place.path()), '.direct');
  fs.mkdirSync(staging);
  await place.sync();
  expect(fs.existsSync(left), 'it looks once').toBe(true);
  place.restarted();
  await place.sync();
  // Nothing resumes a direct transfer here.
  expect(fs.existsSync(staging)).toBe(false);
  expect(place.tree()).toEqual([`11/planted -> ${outside}`, '11/sub/a']);
  expect(fs.readdirSync(outside).every(isPartialName)).toBe(true);
  expect(fs.readdirSync(outside)).toHaveLength(1);
});

it('a job that comes back to this agent is as new to it: its leftovers, an empty list, what stands here', async () => {
  const place = new ResultsPlace();
  place.remote.set('/11/a', 'a');
  place.remote.stamps.set('/11/a', 'one date');
  await place.sync();
  place.now += 10 * MINUTE_MS;
  place.monotonic += 10 * MINUTE_MS;
  // It is due, its date spares it, and its copy was looked at.
  expect(await place.sync()).toMatchObject({ listed: 1, fetched: 0 });
  const listed = new Map(place.remote.files);
  place.remote.files.clear();
  await place.sync();
  // Another agent has it meanwhile, and is killed.
  place.results.forgetJob(JOB);
  fs.rmSync(place.path('11', 'a'));
  fs.writeFileSync(place.path('11', partialName('0123456789abcdef')), 'half');
  await place.sync();
  expect(place.row('/11/a')).toMatchObject({ stamp: 'one date' });
  expect(place.tree()).toEqual([]);
  for (const [name, content] of listed) place.remote.files.set(name, content);
  expect(await place.sync()).toMatchObject({ listed: 1, fetched: 1 });
  expect(place.read('11', 'a')).toBe('a');
});

it('a writer beside the agent changes files during their downloads, and each local file is a whole one at every moment', async () => {
  const place = new ResultsPlace({ parallel: 2 });
  // Each version is one letter, so that a mixed file shows.
  const version = (number: number) => Buffer.alloc(3000 + number, String.fromCharCode(97 + (number % 26)));
  const names = ['/1/a', '/1/b', '/2/c'];
  for (const name of names) place.remote.set(name, version(0));
  let writes = 0;
  place.remote.onPiece = (name) => {
    // The service hands out what it read at the beginning; the file on the cluster is another one by now.
    place.remote.set(name, version(++writes));
    for (const file of place.tree().filter((entry) => !isPartialName(path.basename(entry)))) {
      const letters = new Set(place.read(file));
      expect(letters.size, file).toBe(1);
    }
  };
  for (let look = 0; look < 5; look++) expect(await place.sync(true)).toMatchObject({ failed: 0 });
  expect(names.map((name) => place.row(name)?.state)).toEqual(['in-flux', 'in-flux', 'in-flux']);
  place.remote.onPiece = () => {};
  await place.sync(true);
  for (const name of names) {
    const there = place.remote.files.get(name);
    expect(fs.readFileSync(place.path(...name.split('/'))).equals(there as Buffer)).toBe(true);
  }
  await place.sync(true);
  expect(names.map((name) => place.row(name)?.state)).toEqual(['synced', 'synced', 'synced']);
});

it('each sync of a job prints what it asked for, what it stored, and what is here', async () => {
  const place = new ResultsPlace();
  const transfer = new ModelTransfer(place);
  const { remote, store } = place;
  let rules: typeof OPTIONS | (Omit<typeof OPTIONS, 'maxFileBytes'> & { maxFileBytes: number }) = OPTIONS;
  const { direct } = directBy(place, transfer, 'auto');
  place.restarted({ direct, rules });
  const { method } = remote;
  const error = (code: ConstructorParameters<typeof JobtailError>[0]) => new JobtailError(code, `it is ${code}`);
  const signal = new AbortController().signal;
  const options = { remote, isFinal: true, signal };
  const plain = () => place.sync();
  const shownEnd = (end: unknown) =>
    end instanceof Error ? `${end.message}` : JSON.stringify(end, (key, value) => (key === 'tookMs' ? 0 : value));
  let rows = new Map<string, string>();
  let printed = '';
  const step = async (what: string, change: () => unknown, work: () => Promise<unknown> = plain, minutes = 1) => {
    place.now += minutes * MINUTE_MS;
    place.monotonic += minutes * MINUTE_MS;
    await change();
    const end = await work().catch((thrown: unknown) => thrown);
    const lists = { downloads: remote.downloads, keys: remote.transferCalls, reported: place.reported };
    const orders = transfer.orders.splice(0).map((names) => `${names.slice(0, 3)} of ${names.length}`);
    const lines = [...Object.entries(lists), ['orders', orders] as const].flatMap(([name, all]) =>
      all.length === 0 ? [] : [`${name}: ${all.splice(0, 9).join(' ')}${all.splice(0).length > 0 ? ' ...' : ''}`],
    );
    const sinceStart = (at: number | null) => at && Math.round((at - 1_000_000) / 1_000);
    const found = [...store.results.ofJob(JOB)].map(({ jobId, listedAt, ...row }): [string, string] => [
      row.name,
      Object.values({ ...row, fetchedAt: sinceStart(row.fetchedAt), dueAt: sinceStart(row.dueAt) }).join(' '),
    ]);
    const changed = found.filter(([name, text]) => rows.get(name) !== text).slice(0, 9);
    const gone = [...rows.keys()].filter((name) => !found.some(([other]) => other === name));
    rows = new Map(found);
    const sync = store.resultSyncs.get(JOB);
    const files = place.tree().slice(0, 12);
    printed += `${[
      ...[`- ${what}`, ...lines, ...changed.map(([, text]) => `row ${text}`)],
      ...[...gone.slice(0, 5).map((name) => `no row ${name}`), `here: ${files.join(' ')}`],
      ...[
        `sync: ${Object.values(sync ?? {})
          .slice(4)
          .join(' ')}`,
        `end: ${shownEnd(end)}`,
      ],
    ].join('\n  ')}\n`;
  };
  await step('a small file, a large one, and two that are no files', () => {
    for (const name of ['a', 'b']) remote.set(`/11/${name}`, name);
    for (const name of ['pipe', 'lost', 'slow']) remote.files.set(`/11/${name}`, error('timeout'));
    transfer.contents.set('/11/slow', 'comes in another way');
    remote.set('/11/large', 'x'.repeat(1_500));
    remote.listedToo = ['/11/../evil'];
    transfer.irregular.set('/11/pipe', 'a named pipe');
    transfer.passesOver.add('/11/lost');
  });
  await step('a changes, b is gone', () => {
    remote.set('/11/a', 'changed');
    remote.files.delete('/11/b');
  });
  await step('the transfer ends early', () => {
    for (const name of ['large', 'larger']) remote.set(`/11/${name}`, name.repeat(500));
    transfer.failure = error('interrupted');
  });
  await step('it is not tried again at once', () => remote.set('/11/larger', 'y'.repeat(4_000)), plain, 4);
  await step('nor does it work then', () => remote.set('/11/larger', 'z'.repeat(4_000)), plain, 9);
  await step(
    'it works',
    () => {
      transfer.failure = undefined;
      remote.set('/11/larger', 'other'.repeat(900));
    },
    plain,
    60,
  );
  for (const code of ['timeout', 'fault', 'not-found', 'unavailable', 'interrupted'] as const)
    await step(
      `the service fails to send a small file: ${code}`,
      () => {
        transfer.passesOver.add('/11/a');
        remote.files.set('/11/a', error(code));
      },
      plain,
      90,
    );
  await step(
    'it sends it',
    () => {
      transfer.passesOver.clear();
      remote.set('/11/a', 'here');
    },
    plain,
    60 * 24,
  );
  await step('what is larger than the limit stays', () => {
    rules = { ...OPTIONS, maxFileBytes: 3_000, exclude: ['b*'] };
    place.restarted({ direct, rules });
    remote.set('/11/b', 'excluded');
    remote.set('/11/largest', 'z'.repeat(9_000));
  });
  await step(
    'of a job that is over, all is fetched',
    () => remote.set('/11/a', 'at last'),
    () => place.sync(true),
  );
  await step(
    'again, what changed then',
    () => {
      for (const name of ['a', 'new']) remote.set(`/11/${name}`, 'later');
    },
    () => place.results.sync(JOB, { ...options, onlyInFlux: true }),
  );
  await step(
    'for a comparison',
    () => {},
    async () => {
      const arrived: string[] = [];
      const onFile = async (file: { readonly row: { readonly name: string } }, at: string) =>
        void arrived.push(`${file.row.name} ${fs.readFileSync(at).length}`);
      const failed = await place.results.bringAgain(JOB, {
        ...options,
        onFile,
        onIrregular: () => arrived.push('pipe'),
      });
      return [...arrived, failed];
    },
  );
  await step(
    'the list of the cluster',
    () => {},
    () => place.results.listCluster(JOB, remote, signal),
  );
  await step(
    'its key ends',
    () => {},
    () => place.results.endTransfer(JOB, { remote, signal }),
  );
  for (const answer of [null, error('fault'), error('timeout'), method])
    await step(
      `a key: ${answer instanceof Error ? answer.message : answer?.protocol}`,
      () => {
        remote.method = answer;
        remote.set('/11/larger', `${printed.length}`.repeat(500));
      },
      () => place.sync(true),
      60 * 5,
    );
  await step(
    'a hundred small files',
    () => {
      for (let index = 0; index < 100; index += 1) remote.set(`/11/many/${index}`, 'x');
    },
    plain,
    60,
  );
  await step(
    'without another way',
    () => {
      place.restarted({ direct: null, rules });
      remote.files.clear();
      remote.set('/11/a', 'by the service');
    },
    () => place.results.listCluster(JOB, remote, signal),
  );
  await step('no other file is listed', () => {}, plain, 60 * 25);
  await expect(printed).toMatchFileSnapshot('results.txt');
});
