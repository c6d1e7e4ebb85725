/** Which results come directly, and what happens when that way is closed. */
import { getEventListeners } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { JobtailError } from '../../../../src/errors.ts';
import { DiskReserve } from '../../../../src/system/files.ts';
import { memoryDirectory } from '../../../support/temp-directory.ts';
import { directBy, JOB, ModelTransfer, ResultsPlace } from '../place.ts';

function placeWith(wanted: 'direct' | 'auto', parent?: string) {
  const place = new ResultsPlace({}, parent);
  const transfer = new ModelTransfer(place, 1);
  place.restarted(directBy(place, transfer, wanted));
  return { place, transfer };
}

describe('a direct transfer', () => {
  it('that brings results again for a comparison has one copy at a time beside them, and none when it fails', async () => {
    const { place, transfer } = placeWith('direct');
    for (const name of ['/11/a', '/11/b', '/11/c']) place.remote.set(name, name);
    await place.sync();
    const copies: string[][] = [];
    const onFile = async (_: unknown, arrived: string) => void copies.push(fs.readdirSync(path.dirname(arrived)));
    const { signal } = new AbortController();
    await place.results.bringAgain(JOB, { remote: place.remote, signal, onFile, onIrregular() {} });
    expect(copies).toEqual([['0'], ['1'], ['2']]);
    expect(fs.readdirSync(path.join(place.mirror, JOB))).toEqual(['results']);
    transfer.onFetch = () => fs.writeFileSync(path.join(place.mirror, JOB, '.direct-again', 'partial'), 'so far');
    transfer.failure = new JobtailError('interrupted', 'the connection broke');
    await place.results.bringAgain(JOB, { remote: place.remote, signal, onFile, onIrregular() {} });
    expect(transfer.orders).toHaveLength(3);
    expect(fs.readdirSync(path.join(place.mirror, JOB))).toEqual(['results']);
  });

  it('of many files costs each the same: one turn, two rows each, few transactions', async () => {
    const { place, transfer } = placeWith('auto', memoryDirectory());
    const count = 800;
    transfer.together = 80;
    for (let number = 0; number < count; number++) place.remote.set(`/11/d${number % 50}/f${number}`, `${number}`);
    const transactions = vi.spyOn(place.store, 'transaction');
    const saves = vi.spyOn(place.store.results, 'saveAll');
    expect(await place.sync()).toMatchObject({ listed: count, fetched: count, changed: count, failed: 0 });
    expect(transfer.orders.map((names) => names.split(' ').length)).toEqual([count]);
    expect(place.remote.downloads).toEqual([]);
    expect(place.remote.transferCalls).toEqual(['get']);
    expect(saves.mock.calls.flatMap(([rows]) => rows)).toHaveLength(2 * count);
    expect(transactions.mock.calls.length).toBeLessThan(100);
    expect(place.tree()).toHaveLength(count);
    expect(fs.existsSync(path.join(place.mirror, JOB, '.direct'))).toBe(false);
  });

  it('is stopped where the reserve of the disk begins, for which it looks once a second', async () => {
    const { place, transfer } = placeWith('direct');
    place.remote.set('/11/a', 'a');
    const room = vi.spyOn(DiskReserve.prototype, 'require').mockResolvedValue();
    onTestFinished(() => room.mockRestore());
    const looks: number[] = [];
    transfer.fetch = async ({ onBytes, signal }) => {
      for (const [bytes, passedMs] of [0, 999, 1, 999].entries()) {
        place.monotonic += passedMs;
        onBytes(bytes);
        looks.push(room.mock.calls.length);
      }
      room.mockRejectedValue(new JobtailError('disk-full', 'too little room'));
      place.monotonic += 1;
      onBytes(0);
      await setImmediate();
      signal.throwIfAborted();
    };
    const { signal } = new AbortController();
    await place.sync(false, signal);
    // The first one is before the transfer.
    expect([looks, place.reported]).toEqual([[2, 2, 3, 3], ['fallback: too little room']]);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
