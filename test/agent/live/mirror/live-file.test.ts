import fs from 'node:fs';
import { crc32 } from 'node:zlib';
import { describe, expect, it, onTestFinished, test, vi } from 'vitest';
import type { LiveFile } from '../../../../src/agent/live/mirror/live-file.ts';
import { Mirror } from '../../../../src/agent/live/mirror/mirror.ts';
import { integrityOf } from '../../../../src/agent/live/mirror/open-live-file.ts';
import { ModelDisk } from '../../../support/engine.ts';
import { LivePlace, NEW_ROW } from '../../../support/live-place.ts';

const MIB = Buffer.alloc(1024 * 1024, 'x');
const appendMib = async (file: LiveFile, count: number) => {
  for (let at = 0; at < count; at++) await file.append(MIB);
};

function onDisk() {
  const [place, disk] = [new LivePlace(), new ModelDisk()];
  return { place, disk, openFile: disk.open.bind(disk) };
}

/** A mirror with committed bytes, whose next flush fails. */
async function withFailingFlush() {
  const made = onDisk();
  await made.place.write('safe', made);
  made.disk.flushFailures = 1;
  return made;
}

describe('what is appended', () => {
  test('is committed from time to time within a long append, and flushed in the background more often', async () => {
    const { place, disk, openFile } = onDisk();
    let flushes = 0;
    disk.beforeStep = async (step) => {
      flushes += Number(step === 'datasync');
    };
    await place.during((file) => appendMib(file, 70), { openFile });
    expect(place.commits.map(({ position, grownAt }) => [position / MIB.length, grownAt])).toEqual([
      [0, null],
      ...[32, 64, 70].map((pieces) => [pieces, 0]),
    ]);
    // Each commit has its own, and 8, 16 and 24 pieces before it.
    expect(flushes).toBe(4 + 4 + 1);
  });

  test('does not count any more once it is cut: neither as growth, nor for the next commit', async () => {
    const place = new LivePlace();
    await place.during(async (file) => {
      await appendMib(file, 31);
      await file.cut(0, 'for the test');
      await appendMib(file, 2);
      expect([file.appended, place.commits.length]).toEqual([2 * MIB.length, 1]);
    });
  });

  test('is flushed in the background from 8 MiB on, and the mirror is closed after that', async () => {
    const { place, disk, openFile } = onDisk();
    let release = () => {};
    let flushes = 0;
    disk.beforeStep = async (step) => {
      if (step !== 'datasync') return;
      flushes += 1;
      await new Promise<void>((resolve) => (release = resolve));
    };
    const file = await place.open({ openFile });
    await file.append(Buffer.alloc(8 * 1024 * 1024 - 1, 'x'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(flushes).toBe(0);
    await file.append(Buffer.from('x'));
    const closed = file.close();
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect([flushes, disk.openHandles]).toEqual([1, 1]);
    release();
    await closed;
    expect(disk.openHandles).toBe(0);
  });

  test('leaves no mirror open if its first commit fails', async () => {
    const { place, disk, openFile } = onDisk();
    place.onStep = () => {
      throw new Error('the state cannot be written');
    };
    await expect(place.open({ openFile })).rejects.toThrow('the state');
    expect(disk.openHandles).toBe(0);
  });

  test.each([
    ['a flush', 1],
    ['a flush in the background', 10],
  ])('is taken back if %s fails: the system may hold it for clean', async (_, mib) => {
    const { place, disk, openFile } = await withFailingFlush();
    await expect(place.during((file) => appendMib(file, mib), { openFile })).rejects.toMatchObject({
      code: 'local-io',
    });
    expect([place.read(), place.committed.position, disk.flushFailures, disk.openHandles]).toEqual(['safe', 4, 0, 0]);
    await place.write(' anew', { openFile });
    expect(place.read()).toBe('safe anew');
  });

  test('is not committed by the next flush if it could not even be taken back', async () => {
    const { place, disk, openFile } = await withFailingFlush();
    disk.beforeStep = async (step) => {
      if (step === 'truncate') throw new Error('no truncation either');
    };
    const file = await place.open({ openFile });
    await file.append(Buffer.from(' lost'));
    await expect(file.flushToRow()).rejects.toThrow();
    expect((await file.flushToRow()).position).toBe(4);
    await file.close();
  });
});

it('what is noted of a file is committed once: where the service has it, and its listed name', async () => {
  const place = await LivePlace.of('text');
  for (const fact of [{ relativePath: '/stdout.txt' }, { listedName: '/1/stdout.txt' }]) {
    const { length } = place.commits;
    for (let times = 0; times < 2; times++)
      await place.during(async (file) => {
        file.note(fact);
        // Nothing was appended.
        await file.commitAppended();
      });
    expect(place.committed).toMatchObject(fact);
    expect(place.commits).toHaveLength(length + 1);
  }
});

describe('a promise that is taken back', () => {
  test('is taken back in the state before it is in the mirror', async () => {
    const place = await LivePlace.of('promised');
    const lengths: number[] = [];
    place.onStep = (step) => {
      if (step === 'commit') lengths.push(fs.statSync(place.path).size);
    };
    await place.during(async (file) => {
      await file.cut(4, 'for the test');
      file.markCompared('text');
    });
    expect(lengths[0]).toBe(8);
    expect([place.read(), place.committed.position]).toEqual(['prom', 4]);
  });

  test('leaves the mirror for modified if a kill comes before the rest was compared', async () => {
    const place = await LivePlace.of('promised');
    const file = await place.open();
    await file.cut(4, 'for the test');
    await file.close();
    place.kill();
    await place.during(async ({ integrity }) => expect(integrity).toBe('modified'));
  });

  test('is not extended by a cut after it', async () => {
    const place = await LivePlace.of('promised');
    fs.appendFileSync(place.path, ' tail');
    // Within the same tick of the clock.
    place.commit({ ...place.committed, modifiedNs: String(fs.statSync(place.path, { bigint: true }).mtimeNs) });
    const file = await place.open();
    await file.cut(10, 'for the test');
    expect([place.read(), place.committed.position, file.changed]).toEqual(['promised t', 8, true]);
    // Nor by the next flush: the bytes after it were not compared.
    expect((await file.flushToRow()).position).toBe(8);
    // Another process cuts it while it is open.
    fs.truncateSync(place.path, 4);
    expect((await file.read(0, 10)).toString()).toBe('prom');
    await file.close();
  });

  test('has the checksum of what is left if another process cut the mirror, and the remote file has no more', async () => {
    const place = await LivePlace.of('promised');
    fs.truncateSync(place.path, 4);
    await place.during(async (file) => {
      await file.commitAppended();
      expect(place.committed.position, 'before the comparison').toBe(8);
      file.markCompared('text');
      file.markCompared('raw bytes');
    });
    const mismatches = [{ kind: 'mirror-damaged', at: 4 }];
    expect(place.committed).toMatchObject({ position: 4, checksum: crc32('prom'), mismatches });
  });

  test('ends with its verification once bytes of it come again, but not by further ones', async () => {
    const place = await LivePlace.of('promised');
    place.commit({ ...place.committed, verified: 8 });
    await place.write(' more');
    expect(place.committed.verified).toBe(8);
    await place.during(async (file) => {
      await file.cut(4, 'for the test');
      await file.append(Buffer.from('ised more'));
    });
    expect(place.committed.verified).toBeNull();
  });
});

describe('a mirror on a file system without steady inodes or times', () => {
  it('is not read as a whole at each poll, once its checksum was right several times; that is reported once', async () => {
    let now = 0;
    const place = await LivePlace.of('promised', () => now);
    const checksum = vi.spyOn(Mirror.prototype, 'checksum');
    onTestFinished(() => checksum.mockRestore());
    const onUnsteady = vi.fn();
    const poll = (at: number) => {
      fs.utimesSync(place.path, at, at);
      return place.during(async ({ integrity }) => integrity, { onUnsteady });
    };
    // Of all bytes: nothing that is known of the beginning is passed.
    const whole = () => checksum.mock.calls.filter(({ length }) => length === 1).length;
    for (let at = 1; at <= 50; at++, now += 11_900) expect(await poll(at)).toBe('intact');
    expect(whole()).toBe(5);
    expect(onUnsteady).toHaveBeenCalledOnce();
    // What another process changes is found by the next look at all bytes.
    fs.writeFileSync(place.path, 'PROMISED');
    now += 600_000;
    // One that was wrong is not taken for right in the time after it.
    for (const reads of [6, 7]) expect([await poll(60), whole()]).toEqual(['modified', reads]);
  });

  it('is told by looks in a row: one that finds it as it was left counts from the beginning', async () => {
    const place = await LivePlace.of('promised');
    const onUnsteady = vi.fn();
    const look = () => place.during(async ({ integrity }) => integrity, { onUnsteady });
    for (let at = 1; at <= 12; at++) {
      fs.utimesSync(place.path, at, at);
      expect(await look()).toBe('intact');
      if (at % 4 === 0) expect(await look()).toBe('intact');
    }
    fs.writeFileSync(place.path, 'PROMISED');
    expect([await look(), onUnsteady.mock.calls]).toEqual(['modified', []]);
  });
});

describe('a mirror that is opened', () => {
  it('is intact without committed bytes, whatever a kill left in it', async () => {
    const place = new LivePlace();
    for (let polls = 0; polls < 2; polls++) await place.during(async () => {});
    expect(place.commits).toHaveLength(1);
    fs.appendFileSync(place.path, 'tail');
    expect(await place.during(async ({ integrity }) => integrity)).toBe('intact');
  });

  const row = { ...NEW_ROW, position: 10, checksum: 5, inode: '7', modifiedNs: '100' };
  const look = { length: 10, inode: '7', modifiedNs: '100' };

  test.each([
    ['as it was left', row, look, 'intact'],
    ['longer, as a kill leaves it', row, { ...look, length: 12, modifiedNs: '200' }, 'by its bytes'],
    ['written, with the same length', row, { ...look, modifiedNs: '200' }, 'by its bytes'],
    ['another file', row, { ...look, inode: '8' }, 'by its bytes'],
    ['shorter', row, { ...look, length: 9 }, 'modified'],
    ['written, without a checksum', { ...row, checksum: null }, { ...look, modifiedNs: '200' }, 'unknown'],
    ['cut, and then killed', { ...row, modifiedNs: null }, look, 'modified'],
    ['new', NEW_ROW, { ...look, length: 0 }, 'intact'],
    ['there, though nothing is known of it', NEW_ROW, look, 'unknown'],
  ] as const)('%s', async (_, known, found, integrity) => {
    const byBytes = (hasThem: boolean) => integrityOf(known, found, async () => hasThem);
    const expected = integrity === 'by its bytes' ? ['intact', 'modified'] : [integrity, integrity];
    expect([await byBytes(true), await byBytes(false)]).toEqual(expected);
  });
});
