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
  it('brings everything if it is wanted so; its files take their places like all others', async () => {
    const { place, transfer } = placeWith('direct');
    place.remote.set('/11/a', 'a');
    place.remote.set('/11/b', 'bb');
    expect(await place.sync()).toMatchObject({ fetched: 2, changed: 2, failed: 0, bytes: 3 });
    expect(place.remote.downloads).toEqual([]);
    expect(place.tree()).toEqual(['11/a', '11/b']);
    fs.utimesSync(place.path('11', 'a'), 1, 1);
    const fetch = vi.spyOn(transfer, 'fetch');
    expect(await place.sync(true)).toMatchObject({ fetched: 2, changed: 0 });
    // Room for a second copy of the largest one is needed.
    expect(fetch.mock.calls).toMatchObject([[{ largestPresentBytes: 2 }]]);
    expect(fs.statSync(place.path('11', 'a')).mtimeMs).toBe(1000);
    expect(transfer.orders).toHaveLength(2);
    expect(place.remote.transferCalls).toEqual(['get']);
    expect(place.store.leases.lastOf(JOB)).toMatchObject({ state: 'open', way: 'rsync' });
    expect(place.store.resultSyncs.get(JOB)).toMatchObject({ wanted: 2, done: 2, bytes: 3, fallback: null });
    // What ends the work for this job is no reason for another way.
    for (const code of ['store', 'superseded'] as const) {
      place.results.forgetJob(JOB);
      transfer.failure = new JobtailError(code, 'it ends here');
      await expect(place.sync(true)).rejects.toMatchObject({ code });
      expect([place.remote.downloads, place.reported]).toEqual([[], []]);
    }
  });

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

  it.each([1, 100])(
    'brings in the same sync what the service is first seen to refuse by name, of %d files',
    async (count) => {
      const { place, transfer } = placeWith('auto');
      const refusal = new JobtailError('usage', 'this file cannot be requested: the service hands out no such name');
      const { remote } = place;
      const download = remote.downloadFile.bind(remote);
      remote.downloadFile = async (jobId, name, ...others) => {
        if (remote.files.get(name) === refusal) remote.reasons.set(name, refusal.message);
        return await download(jobId, name, ...others);
      };
      for (let index = 1; index < count; index++) place.remote.set(`/11/${index}`, 'x');
      const [odd, lost] = ['/11/odd;name', '/11/bad\uFFFD.bin'];
      for (const name of [odd, lost]) place.remote.files.set(name, refusal);
      transfer.contents.set(odd, 'odd');
      transfer.passesOver.add(lost);
      expect(await place.sync()).toMatchObject({ fetched: count, failed: 0, refused: 1 });
      expect(place.row(odd)?.state).toBe('synced');
      const reason = 'its name is not UTF-8: rename it on the cluster';
      expect(place.row(lost)).toMatchObject({ state: 'refused', reason });
      // It is not due yet.
      const { length } = transfer.orders;
      await place.sync();
      expect(transfer.orders).toHaveLength(length);
    },
  );

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

  it.each([false, true])(
    'that was stopped goes on at once with what it left, in another process: %s',
    async (isOther) => {
      const { place, transfer } = placeWith('direct');
      const staging = path.join(place.mirror, JOB, '.direct');
      place.remote.set('/11/a', 'a');
      transfer.failure = new JobtailError('aborted', 'it was stopped');
      const stop = new AbortController();
      transfer.onFetch = () => {
        fs.writeFileSync(path.join(staging, 'partial'), 'so far');
        stop.abort();
      };
      await expect(place.sync(true, stop.signal)).rejects.toMatchObject({ code: 'aborted' });
      let kept: readonly string[] = [];
      transfer.onFetch = () => {
        kept = fs.readdirSync(staging);
      };
      transfer.failure = undefined;
      if (isOther) place.restarted(directBy(place, transfer, 'direct'));
      expect(await place.sync(true)).toMatchObject({ fetched: 1, failed: 0 });
      expect(kept).toContain('partial');
      expect([place.remote.downloads, fs.existsSync(staging)]).toEqual([[], false]);
    },
  );

  it('that fails leaves what can be resumed, until no file waits for it', async () => {
    const { place, transfer } = placeWith('direct');
    const partial = path.join(place.mirror, JOB, '.direct', 'partial');
    const name = '/11/large';
    place.remote.set('/11/small', 'small');
    transfer.onFetch = () => fs.writeFileSync(partial, 'so far');
    transfer.failure = new JobtailError('interrupted', 'the connection broke');
    const syncLater = async () => {
      const end = await place.sync();
      place.now += 60_000;
      return end;
    };
    // Neither the service brings it, nor is it due again while other files come.
    place.remote.files.set(name, new JobtailError('http-status', 'status 500'));
    expect(await syncLater()).toMatchObject({ failed: 1 });
    place.remote.set('/11/other', 'other');
    expect(await syncLater()).toMatchObject({ fetched: 2, failed: 0 });
    expect(fs.existsSync(partial)).toBe(true);
    place.remote.reasons.set(name, 'the service refuses its name');
    expect(await place.sync(true)).toMatchObject({ refused: 1 });
    const { signal } = new AbortController();
    await place.results.endTransfer(JOB, { remote: place.remote, signal });
    expect([transfer.orders.length, fs.existsSync(partial)]).toEqual([1, true]);
    place.remote.reasons.clear();
    place.remote.set(name, 'large');
    expect(await place.sync(true)).toMatchObject({ fetched: 3 });
    expect(fs.existsSync(partial)).toBe(false);
    // Nor after the job.
    fs.mkdirSync(path.dirname(partial));
    place.store.jobs.setState(JOB, 'ended');
    await place.results.endTransfer(JOB, { remote: place.remote, signal });
    expect(fs.existsSync(path.dirname(partial))).toBe(false);
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
