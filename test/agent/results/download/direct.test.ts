/** Which results come directly, and what happens when that way is closed. */
import { getEventListeners } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { TransferMethod } from '../../../../src/agent/ports/server.ts';
import type { ResultsOptions } from '../../../../src/agent/results/results.ts';
import { JobtailError, KeyRefused } from '../../../../src/errors.ts';
import type { JobId } from '../../../../src/job.ts';
import type { ResultRow } from '../../../../src/store/rows.ts';
import { DiskReserve } from '../../../../src/system/files.ts';
import { memoryDirectory } from '../../../support/temp-directory.ts';
import { directBy, JOB, ModelTransfer, OPTIONS, ResultsPlace } from '../place.ts';

const OTHER = '502' as JobId;

/** Syncs another job, which has the same results. */
function syncOther({ store, now, results, remote }: ResultsPlace, jobId = OTHER) {
  const order = { jobId, tasks: [], files: [], results: true, settleAfterMs: null, source: 'command' } as const;
  if (store.jobs.get(jobId) === undefined) store.jobs.watch(order, now);
  return results.sync(jobId, { remote, isFinal: true, signal: new AbortController().signal });
}

function placeWith(
  wanted: 'direct' | 'auto',
  more: Partial<typeof OPTIONS> = {},
  parent?: string,
  context: Partial<ResultsOptions> = {},
) {
  const place = new ResultsPlace({}, parent);
  const transfer = new ModelTransfer(place, 1);
  place.restarted({ ...directBy(place, transfer, wanted), rules: { ...OPTIONS, ...more }, ...context });
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

  it('brings the large ones and leaves the small ones to SOAP, with auto', async () => {
    const { place, transfer } = placeWith('auto');
    place.remote.pieceBytes = 500;
    place.remote.set('/11/small', Buffer.alloc(1_000));
    place.remote.set('/11/large', Buffer.alloc(5_000));
    expect(await place.sync()).toMatchObject({ fetched: 2, failed: 0 });
    expect(place.remote.downloads.sort()).toEqual(['/11/large', '/11/small']);
    expect(transfer.orders).toEqual([['/11/large']]);
    // By now it is known.
    place.remote.downloads.length = 0;
    await place.sync(true);
    expect(place.remote.downloads).toEqual(['/11/small']);
    expect(transfer.orders).toEqual([['/11/large'], ['/11/large']]);
  });

  it.each([99, 100])('brings a hundred or more together, with auto, and no fewer: %i', async (count) => {
    const { place, transfer } = placeWith('auto');
    for (let number = 0; number < count; number++) place.remote.set(`/11/${number}`, `${number}`);
    expect(await place.sync()).toMatchObject({ fetched: count });
    expect([place.remote.downloads.length, transfer.orders.length]).toEqual(count < 100 ? [count, 0] : [0, 1]);
  });

  it('that brings results again for a comparison has one copy at a time beside them', async () => {
    const { place } = placeWith('direct');
    for (const name of ['/11/a', '/11/b', '/11/c']) place.remote.set(name, name);
    await place.sync();
    const copies: string[][] = [];
    const onFile = async (_: unknown, arrived: string) => void copies.push(fs.readdirSync(path.dirname(arrived)));
    const { signal } = new AbortController();
    await place.results.bringAgain(JOB, { remote: place.remote, signal, onFile, onIrregular() {} });
    expect(copies).toEqual([['0'], ['1'], ['2']]);
    expect(fs.readdirSync(path.join(place.mirror, JOB))).toEqual(['results']);
  });

  it('that was stopped is no failure: it is tried again at once', async () => {
    const { place, transfer } = placeWith('direct');
    place.remote.set('/11/a', 'a');
    const stop = new AbortController();
    transfer.onFetch = () => stop.abort();
    transfer.failure = new JobtailError('aborted', 'it was stopped');
    await expect(place.sync(true, stop.signal)).rejects.toMatchObject({ code: 'aborted' });
    transfer.failure = undefined;
    expect(await place.sync(true)).toMatchObject({ failed: 0 });
    expect([place.remote.downloads, transfer.orders.length]).toEqual([[], 2]);
  });

  it('leaves to SOAP what it cannot bring', async () => {
    const { place, transfer } = placeWith('direct');
    place.remote.set('/11/a', 'a');
    place.remote.set('/11/link', 'through a link');
    transfer.passesOver.add('/11/link');
    expect(await place.sync()).toMatchObject({ fetched: 2, failed: 0 });
    expect(place.remote.downloads).toEqual(['/11/link']);
  });

  it('that breaks off is continued by SOAP, and the reason is reported and kept', async () => {
    const { place, transfer } = placeWith('direct');
    for (const name of ['/11/a', '/11/b', '/11/c']) place.remote.set(name, name);
    transfer.failure = new JobtailError('unexpected-answer', 'h refused the temporary key', { hint: 'ask them' });
    expect(await place.sync()).toMatchObject({ fetched: 3, failed: 0 });
    expect(place.remote.downloads).toEqual(['/11/b', '/11/c']);
    expect(place.reported).toEqual(['fallback: h refused the temporary key (ask them)']);
    expect(place.store.resultSyncs.get(JOB)?.fallback).toBe('h refused the temporary key (ask them)');
    // It rests for a while, then is tried again, however the wall clock is set in between.
    place.now += 6 * 60_000;
    place.monotonic += 4 * 60_000;
    await place.sync(true);
    expect(transfer.orders).toHaveLength(1);
    // Why is to be seen all the time, and said once.
    expect(place.store.resultSyncs.get(JOB)?.fallback).toBe('h refused the temporary key (ask them)');
    expect(place.reported).toHaveLength(1);
    transfer.failure = undefined;
    place.now -= 24 * 60 * 60_000;
    place.monotonic += 2 * 60_000;
    await place.sync(true);
    expect(transfer.orders).toHaveLength(2);
    expect(place.store.resultSyncs.get(JOB)?.fallback).toBeNull();
  });

  it.each([
    ['no method', null],
    ['a refusal', new JobtailError('fault', 'too many keys')],
    ['a method without a protocol', { serverHostname: 'h', sharedBasepath: '/s', protocol: null, credentials: null }],
  ])('with %s from the service is done by SOAP', async (_, method) => {
    const { place, transfer } = placeWith('direct');
    place.remote.set('/11/a', 'a');
    place.remote.method = method;
    expect(await place.sync()).toMatchObject({ fetched: 1, failed: 0 });
    expect(transfer.orders).toEqual([]);
    expect(place.reported).toHaveLength(1);
  });

  it('brings new files with the key in hand, and names that the service refuses, with auto', async () => {
    const { place, transfer } = placeWith('auto');
    place.remote.set('/11/odd;name', 'x');
    place.remote.set('/11/small', 'small');
    place.remote.reasons.set('/11/odd;name', 'the service hands out no such name');
    expect(await place.sync()).toMatchObject({ fetched: 2, failed: 0 });
    expect([transfer.orders, place.remote.downloads]).toEqual([[['/11/odd;name']], ['/11/small']]);
    place.remote.set('/11/new', 'its size is not known yet');
    await place.sync(true);
    expect(transfer.orders[1]?.sort()).toEqual(['/11/new', '/11/odd;name']);
    expect(place.remote.downloads).toEqual(['/11/small', '/11/small']);
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
      expect(place.row(lost)).toMatchObject({
        state: 'refused',
        reason: 'its name is not UTF-8: rename it on the cluster',
      });
      // It is not due yet.
      const { length } = transfer.orders;
      await place.sync();
      expect(transfer.orders).toHaveLength(length);
    },
  );

  it('to a host that one job could not reach is not tried by the others, who need no key for that', async () => {
    const { place, transfer } = placeWith('auto');
    place.remote.set('/11/large', Buffer.alloc(5_000));
    transfer.failure = new JobtailError('unreachable', 'h cannot be reached over SSH');
    transfer.passesOver.add('/11/large');
    expect(await place.sync()).toMatchObject({ fetched: 1, failed: 0 });
    expect(await syncOther(place)).toMatchObject({ fetched: 1, failed: 0 });
    expect([transfer.orders.length, place.remote.transferCalls]).toEqual([1, ['get']]);
    await syncOther(place);
    expect(place.store.resultSyncs.get(OTHER)?.fallback).toBe('h cannot be reached over SSH');
    // When the pause of the host is over, any job may try it, and opens it for all.
    place.monotonic += 6 * 60_000;
    transfer.failure = undefined;
    transfer.passesOver.clear();
    await syncOther(place);
    await place.sync(true);
    expect(transfer.orders.length).toBe(3);
    expect(place.remote.transferCalls).toEqual(['get', 'get']);
    for (const jobId of [JOB, OTHER]) expect(place.store.resultSyncs.get(jobId)?.fallback).toBeNull();
    // Beside another host that cannot be reached, a job without a known one may have that which was reached.
    const { method } = place.remote;
    place.remote.method = { ...method, serverHostname: 'h2' } as TransferMethod;
    transfer.failure = new JobtailError('unreachable', 'h2 cannot be reached over SSH');
    transfer.passesOver.add('/11/large');
    await syncOther(place, '503' as JobId);
    place.remote.method = method;
    transfer.failure = undefined;
    await syncOther(place, '504' as JobId);
    expect(transfer.orders.length).toBe(5);
  });

  it.each([
    ['unexpected-answer', 'the host key of h is not the one that is known', 1],
    ['unexpected-answer', 'h refused the temporary key', 1],
    ['interrupted', 'the transfer from h stood still', 1],
    ['local-io', 'the disk is broken', 2],
  ] as const)(
    'that fails before the host shows a file is not tried by others: %s, %s',
    async (code, message, tries) => {
      const { place, transfer } = placeWith('direct');
      place.remote.set('/11/a', 'a');
      place.remote.set('/11/b', 'b');
      transfer.failure = new JobtailError(code, message);
      transfer.passesOver.add('/11/a');
      await place.sync();
      await syncOther(place);
      expect([transfer.orders.length, place.remote.transferCalls]).toEqual([tries, Array(tries).fill('get')]);
      // Its host worked: only that job waits.
      transfer.passesOver.clear();
      place.monotonic += 6 * 60_000;
      await place.sync(true);
      await syncOther(place);
      expect(transfer.orders.length).toBe(tries + 2);
      // Until it fails again.
      transfer.passesOver.add('/11/a');
      for (const jobId of ['503', '504']) await syncOther(place, jobId as JobId);
      expect(transfer.orders.length).toBe(2 * tries + 2);
    },
  );

  it('replaces a key that the host refuses an hour after it was made', async () => {
    const { place, transfer } = placeWith('direct');
    place.remote.set('/11/a', 'a');
    transfer.failure = new KeyRefused('h');
    transfer.passesOver.add('/11/a');
    const syncAfter = async (minutes: number) => {
      place.now += minutes * 60_000;
      place.monotonic += minutes * 60_000;
      await place.sync(true);
    };
    // A host may learn of a new one late.
    for (const minutes of [0, 20, 39]) await syncAfter(minutes);
    expect([transfer.orders.length, place.remote.transferCalls]).toEqual([3, ['get']]);
    for (const minutes of [40, 50]) await syncAfter(minutes);
    expect([transfer.orders.length, place.remote.transferCalls]).toEqual([5, ['get', 'end key', 'get']]);
    transfer.failure = new JobtailError('unexpected-answer', 'the host key of h is not the one that is known');
    for (const minutes of [200, 300]) await syncAfter(minutes);
    expect([transfer.orders.length, place.remote.transferCalls]).toEqual([7, ['get', 'end key', 'get']]);
  });

  it('that brought bytes before it broke off is tried again as after a first failure', async () => {
    const { place, transfer } = placeWith('direct');
    for (const name of ['/11/a', '/11/b']) {
      place.remote.set(name, name);
      transfer.passesOver.add(name);
    }
    transfer.failure = new JobtailError('unreachable', 'h cannot be reached over SSH');
    const tries: number[] = [];
    for (const isReached of [false, true, false, false]) {
      if (isReached) transfer.passesOver.delete('/11/a');
      else transfer.passesOver.add('/11/a');
      await place.sync(true);
      tries.push(transfer.orders.length);
      place.monotonic += 6 * 60_000;
    }
    expect(tries).toEqual([1, 2, 3, 3]);
  });

  it('that fails for one job waits as after a first failure once it worked, and not where the job comes back', async () => {
    const { place, transfer } = placeWith('direct');
    place.remote.set('/11/a', 'a');
    const tries: number[] = [];
    for (const isFailing of [true, false, true, true]) {
      transfer.failure = isFailing ? new JobtailError('local-io', 'rsync failed') : undefined;
      await place.sync(true);
      tries.push(transfer.orders.length);
      place.monotonic += 6 * 60_000;
    }
    await place.sync(true);
    place.results.forgetJob(JOB);
    await place.sync(true);
    expect([...tries, transfer.orders.length]).toEqual([1, 2, 3, 4, 5]);
  });

  it.each([
    ['auto', 5],
    ['direct', 9],
  ] as const)('with %s uses at most so many keys of a job: %i', async (wanted, keys) => {
    const { place, transfer } = placeWith(wanted);
    place.remote.set('/11/large', Buffer.alloc(5_000));
    for (let restarts = 0; restarts < 9; restarts++) {
      place.restarted({ ...directBy(place, transfer, wanted) });
      expect(await place.sync(true)).toMatchObject({ fetched: 1, failed: 0 });
    }
    expect(place.remote.transferCalls.filter((call) => call === 'get')).toHaveLength(keys);
    const why = 'the agent has used 5 temporary keys of this job';
    if (wanted === 'auto') expect(place.store.resultSyncs.get(JOB)?.fallback).toContain(why);
  });

  it('of many files costs each the same: one turn, two rows each, few transactions', async () => {
    const { place, transfer } = placeWith('auto', {}, memoryDirectory());
    const count = 800;
    transfer.together = 80;
    for (let number = 0; number < count; number++) place.remote.set(`/11/d${number % 50}/f${number}`, `${number}`);
    const transactions = vi.spyOn(place.store, 'transaction');
    const saves = vi.spyOn(place.store.results, 'saveAll');
    expect(await place.sync()).toMatchObject({ listed: count, fetched: count, changed: count, failed: 0 });
    expect(transfer.orders.map((names) => names.length)).toEqual([count]);
    expect(place.remote.downloads).toEqual([]);
    expect(place.remote.transferCalls).toEqual(['get']);
    expect(saves.mock.calls.flatMap(([rows]) => rows)).toHaveLength(2 * count);
    expect(transactions.mock.calls.length).toBeLessThan(100);
    expect(place.tree()).toHaveLength(count);
    expect(fs.existsSync(path.join(place.mirror, JOB, '.direct'))).toBe(false);
  });

  it('that was stopped leaves what can be resumed, until it is of no use', async () => {
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
    place.restarted(directBy(place, transfer, 'direct'));
    await place.sync(true).catch(() => {});
    expect(kept).toContain('partial');
    place.restarted();
    expect(await place.sync(true)).toMatchObject({ fetched: 1 });
    expect(fs.existsSync(staging)).toBe(false);
  });

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

  it('does not begin where there is no room', async () => {
    const { place, transfer } = placeWith('direct', {}, undefined, { minFreeBytes: Number.MAX_SAFE_INTEGER });
    place.remote.set('/11/a', 'a');
    expect(await place.sync()).toMatchObject({ fetched: 0, failed: 1 });
    expect(transfer.orders).toEqual([]);
    expect(place.remote.transferCalls).toEqual([]);
    expect(place.reported).toEqual([expect.stringContaining('less than mirror.minFreeBytes would stay free')]);
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

  it('keeps to maxFileBytes, to bandwidthLimit, to links in the mirror, and to live files', async () => {
    const limits = { maxFileBytes: 10, bandwidthLimit: 7_000 } as unknown as typeof OPTIONS;
    const { place, transfer } = placeWith('direct', limits);
    place.live('stdout', 'live\n');
    place.remote.set('/11/stdout.txt', 'live\n');
    place.remote.set('/11/large', 'more than ten bytes');
    place.remote.set('/11/planted', 'x');
    fs.mkdirSync(place.path('11'), { recursive: true });
    fs.symlinkSync('/etc/passwd', place.path('11', 'planted'));
    expect(await place.sync(true)).toMatchObject({ failed: 1, leftOut: 1 });
    expect(place.tree()).toEqual(['11/planted -> /etc/passwd', '11/stdout.txt -> ../../live/9001/stdout.log']);
    expect(transfer.orders).toEqual([['/11/stdout.txt', '/11/large']]);
    // Nor is a live file among what is brought once more, to be compared.
    place.remote.set('/11/small', 'small');
    await place.sync(true);
    const again: string[] = [];
    const onFile = async ({ row }: { readonly row: ResultRow }) => void again.push(row.name);
    const { signal } = new AbortController();
    await place.results.bringAgain(JOB, { remote: place.remote, signal, onFile, onIrregular() {} });
    expect([again, transfer.limits]).toEqual([['/11/small'], [7_000, 7_000, 7_000]]);
  });
});
