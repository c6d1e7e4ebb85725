import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { isPartialName, partialName } from '../../../src/safe-names.ts';
import { DiskReserve } from '../../../src/system/files.ts';
import { expectCases } from '../../support/errors.ts';
import { JOB, played, ResultsPlace } from './place.ts';

const MINUTE_MS = 60_000;

describe('what is fetched', () => {
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

  it('for which the disk has no more room stops there: it is looked at every 16 MiB', async () => {
    const place = new ResultsPlace();
    const some = 16 * 2 ** 20;
    place.remote.pieceBytes = 2 ** 20;
    place.remote.set('/11/a', Buffer.alloc(2 * some + 1));
    const room = vi.spyOn(DiskReserve.prototype, 'hasRoomFor');
    onTestFinished(() => room.mockRestore());
    room.mockImplementation(async () => room.mock.calls.length < 3);
    expect(await place.sync()).toMatchObject({ failed: 1, bytes: 2 * some - place.remote.pieceBytes });
    expect(room.mock.calls).toEqual([[0], [some], [some]]);
    expect(place.row('/11/a')).toMatchObject({ state: 'failed', reason: expect.stringMatching(/^less than mirror/) });
  });
});

it.each(['syncs', 'place/live-links', 'download/direct', 'download/hangs'])(
  'each sync requests, changes and reports what is written: %s',
  async (file) => {
    await expectCases(path.join(import.meta.dirname, `${file}.txt`), played);
  },
);

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
