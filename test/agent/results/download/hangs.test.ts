/** Results on which the service hangs: named pipes, and files that it reads for longer than a request may take. */
import { describe, expect, it } from 'vitest';
import { JobtailError, type NoFile } from '../../../../src/errors.ts';
import { directBy, JOB, ModelTransfer, ResultsPlace } from '../place.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;
const SILENT = new JobtailError('timeout', 'h:80 did not start to respond in time');

/** A job with a pipe between two files. */
function placeWithPipe(): ResultsPlace {
  const place = new ResultsPlace();
  place.remote.set('/11/a', 'a');
  place.remote.files.set('/11/pipe', SILENT);
  place.remote.set('/11/z', 'z');
  return place;
}

/** With a direct way in memory, which is set up first. */
function withSsh(place: ResultsPlace, setUp: (transfer: ModelTransfer) => unknown, wanted?: 'direct'): ModelTransfer {
  const transfer = new ModelTransfer(place);
  setUp(transfer);
  place.restarted(directBy(place, transfer, wanted ?? 'auto'));
  return transfer;
}

/** Syncs each minute; the minutes in which the pipe was requested. */
async function requestsOf(place: ResultsPlace, minutes: number, isFinal = false): Promise<number[]> {
  const found: number[] = [];
  for (let minute = 1; minute <= minutes; minute++) {
    place.now += MINUTE_MS;
    place.remote.downloads.length = 0;
    await place.sync(isFinal);
    if (place.remote.downloads.includes('/11/pipe')) found.push(minute);
  }
  return found;
}

describe('a file on which the service hangs', () => {
  it('keeps no other from coming, and is requested once more with patience, then once a day', async () => {
    const place = placeWithPipe();
    expect(await place.sync()).toMatchObject({ fetched: 2, failed: 1 });
    expect(place.row('/11/pipe')).toMatchObject({
      state: 'failed',
      hangs: 1,
      reason:
        'the service sent no data for 60 s: the file may be a named pipe or very large; requested again with a longer timeout',
    });
    expect(place.remote.silences).toEqual([60_000, 60_000, 60_000]);
    expect(await requestsOf(place, 30)).toEqual([2]);
    expect(place.remote.silences.filter((ms) => ms !== 60_000)).toEqual([600_000]);
    expect(place.row('/11/pipe')).toMatchObject({
      hangs: 2,
      reason: expect.stringContaining('no data for 600 s: the file may'),
    });
    place.now += DAY_MS - 30 * MINUTE_MS;
    expect(await requestsOf(place, 30)).toEqual([2]);
    // A process that starts anew goes on with that, and so does a complete pass, which counts it.
    place.restarted();
    expect(await requestsOf(place, 20, true)).toEqual([]);
    expect(await place.sync(true)).toMatchObject({ failed: 1 });
  });

  it('is not taken for one that only waits behind it', async () => {
    const place = placeWithPipe();
    place.remote.files.set('/11/z', SILENT);
    await expect(place.sync()).rejects.toMatchObject({ code: 'timeout' });
    expect(place.row('/11/pipe')?.hangs).toBe(1);
    expect(place.row('/11/z')).toMatchObject({ hangs: 1, state: 'failed' });
    place.remote.set('/11/z', 'z');
    expect(await place.sync()).toMatchObject({ changed: 1 });
    expect(place.row('/11/z')).toMatchObject({ state: 'synced', hangs: 0 });
  });

  it('is itself the cause where the service responded since it hung on another one', async () => {
    const place = placeWithPipe();
    place.remote.files.set('/11/zz', SILENT);
    expect(await place.sync()).toMatchObject({ fetched: 2, failed: 2 });
    const itself = { hangs: 1, reason: expect.stringContaining('no data for 60 s: the file may') };
    for (const name of ['/11/pipe', '/11/zz']) expect(place.row(name)).toMatchObject(itself);
    // A listing is a response as well.
    place.remote.files.set('/11/next', SILENT);
    await place.sync();
    expect(place.row('/11/next')).toMatchObject(itself);
  });

  it('is requested twice, also behind another one, and when a stop interrupts the second request', async () => {
    const place = placeWithPipe();
    place.remote.files.set('/11/z', SILENT);
    await expect(place.sync()).rejects.toMatchObject({ code: 'timeout' });
    const stop = new AbortController();
    const { downloadFile } = place.remote;
    place.remote.downloadFile = async (...call) => {
      stop.abort();
      return await downloadFile.apply(place.remote, call);
    };
    place.remote.files.set('/11/a', Buffer.from('a'));
    await expect(place.sync(false, stop.signal)).rejects.toMatchObject({ code: 'timeout' });
    place.remote.downloadFile = downloadFile;
    expect(place.remote.downloads.filter((name) => name === '/11/z')).toHaveLength(2);
    place.restarted();
    for (let minute = 0; minute < 30; minute += 1) {
      place.now += MINUTE_MS;
      await place.sync(minute > 20);
    }
    for (const name of ['/11/pipe', '/11/z'])
      expect(place.remote.downloads.filter((one) => one === name)).toHaveLength(2);
  });

  it.each(['unreachable', 'rate-limited', 'session-lost', 'disk-full'] as const)(
    'waits no day after a request that met %s',
    async (code) => {
      const place = placeWithPipe();
      await place.sync();
      const before = place.row('/11/pipe');
      place.remote.files.set('/11/pipe', new JobtailError(code, 'not of this file'));
      place.now += 2 * MINUTE_MS;
      await expect(place.sync()).rejects.toMatchObject({ code });
      expect(place.row('/11/pipe')).toEqual(before);
      place.remote.files.set('/11/pipe', SILENT);
      expect(await requestsOf(place, 30)).toEqual([1]);
    },
  );

  it('that breaks off after its beginning has not hung', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', Buffer.alloc(5_000));
    place.remote.onPiece = () => Promise.reject(new JobtailError('timeout', 'h:80 sent nothing new'));
    await place.sync();
    expect(place.row('/11/a')).toMatchObject({ state: 'failed', hangs: 0 });
  });

  it('comes by SSH at once, with auto, as does what waited behind it, and stays with SSH', async () => {
    const place = placeWithPipe();
    place.remote.files.set('/11/z', SILENT);
    const { contents } = withSsh(place, ({ contents: all }) => all.set('/11/pipe', 'large').set('/11/z', 'z'));
    expect(await place.sync()).toMatchObject({ fetched: 3, failed: 0 });
    expect(place.remote.downloads).toEqual(['/11/a', '/11/pipe']);
    expect(place.row('/11/pipe')).toMatchObject({ state: 'synced', hangs: 1 });
    place.remote.set('/11/z', 'z');
    expect(await requestsOf(place, 5)).toEqual([]);
    await place.sync(true);
    expect(place.remote.downloads).not.toContain('/11/pipe');
    expect(place.remote.transferCalls).toEqual(['get']);
    // Once SSH fails, the service is not asked at once.
    contents.clear();
    place.restarted();
    expect(await requestsOf(place, 60, true)).toEqual([17]);
  });

  it('that SSH does not bring, such as a link, is requested with patience as without SSH', async () => {
    const place = placeWithPipe();
    withSsh(place, ({ passesOver }) => passesOver.add('/11/pipe'));
    expect(await place.sync()).toMatchObject({ fetched: 2, failed: 1 });
    expect(place.row('/11/pipe')).toMatchObject({ state: 'failed', hangs: 1 });
    expect(await requestsOf(place, 30)).toEqual([2]);
    expect(place.remote.silences.filter((ms) => ms !== 60_000)).toEqual([600_000]);
    place.remote.set('/11/pipe', 'a large file behind a link');
    place.now += DAY_MS;
    await place.sync();
    expect(place.row('/11/pipe')).toMatchObject({ state: 'synced', hangs: 0 });
  });

  it('is requested by the service later where SSH does not work', async () => {
    const place = placeWithPipe();
    withSsh(place, () => {});
    place.remote.method = null;
    expect(await place.sync()).toMatchObject({ fetched: 2, failed: 1 });
    expect(place.row('/11/pipe')?.reason).toContain('requested again with a longer timeout');
    expect(await requestsOf(place, 4)).toEqual([2]);
  });
});

describe('a file that the service answers with an error', () => {
  const FAILED = new JobtailError('http-status', 'the service answered DownloadFileFromCluster with status 500');

  it('comes by SSH next, with auto, and is requested from the service no more', async () => {
    const place = new ResultsPlace();
    const names = ['/11/a', '/11/b', '/11/c', '/11/d'];
    for (const name of names) place.remote.files.set(name, FAILED);
    place.remote.set('/11/z', 'z');
    withSsh(place, ({ contents }) => names.forEach((name) => void contents.set(name, name)));
    expect(await place.sync()).toMatchObject({ fetched: 5, failed: 0 });
    // After three in a row, the service is the cause.
    expect(place.remote.downloads).toEqual(['/11/a', '/11/b', '/11/c']);
    expect(place.store.resultSyncs.get(JOB)).toMatchObject({ wanted: 5, done: 5 });
    place.remote.downloads.length = 0;
    await place.sync(true);
    expect(place.remote.downloads).toEqual(['/11/d', '/11/z']);
  });

  it.each([
    ['fault', undefined, 'synced', 'synced'],
    ['malformed', undefined, 'synced', 'synced'],
    ['answer-too-large', undefined, 'synced', 'synced'],
    ['local-io', undefined, 'failed', 'failed'],
    ['fault', 'nothing', 'listed', 'left-out'],
    ['fault', 'unreadable', 'refused', 'refused'],
  ] as const)(
    'comes by SSH next, with auto, after %s, unless the service names what is there (%s)',
    async (code, inPlace, ...states) => {
      const place = new ResultsPlace();
      place.remote.set('/11/a', 'a');
      place.remote.files.set('/11/huge', new JobtailError(code, 'the service answered', { inPlace }));
      const transfer = withSsh(place, ({ contents }) => contents.set('/11/huge', 'three gigabytes'));
      for (const state of states) {
        await place.sync();
        expect(place.row('/11/huge')?.state).toBe(state);
      }
      expect(transfer.orders).toEqual(states[0] === 'synced' ? [['/11/huge']] : []);
    },
  );

  it('says which ways it did not come, and is requested from the service again', async () => {
    const place = new ResultsPlace();
    place.remote.files.set('/11/a', FAILED);
    withSsh(place, ({ passesOver }) => passesOver.add('/11/a'));
    expect(await place.sync()).toMatchObject({ fetched: 0, failed: 1 });
    expect(place.row('/11/a')?.reason).toBe(`${FAILED.message}, and a direct transfer did not bring it`);
    // A moment later, the service sends it; SSH still brings no link, for example.
    place.remote.set('/11/a', 'a');
    place.now += HOUR_MS;
    expect(await place.sync()).toMatchObject({ fetched: 1 });
    expect(place.row('/11/a')).toMatchObject({ state: 'synced', hangs: 0, reason: null });
  });
});

describe('what SSH shows to be no regular file', () => {
  it.each([
    ['a named pipe', 'never'],
    ['a link to a missing file', 'in complete passes'],
    ['a directory', 'in complete passes'],
  ] as const)('%s is left out, and without SSH is requested from the service %s', async (kind, when) => {
    const place = placeWithPipe();
    const transfer = withSsh(place, ({ irregular }) => irregular.set('/11/pipe', kind), 'direct');
    expect(await place.sync()).toMatchObject({ fetched: 2, failed: 0 });
    expect(place.row('/11/pipe')).toMatchObject({ state: 'left-out', reason: `it is ${kind}` });
    expect(await requestsOf(place, 10)).toEqual([]);
    expect(await requestsOf(place, 2, true)).toEqual([]);
    place.restarted(directBy(place, transfer, 'auto'));
    place.remote.method = null;
    // Some releases refuse it without a word about what it is.
    place.remote.files.set('/11/pipe', new JobtailError('fault', 'Exception of type X was thrown.'));
    expect(await requestsOf(place, 2, true)).toEqual(when === 'never' ? [] : [1, 2]);
    expect(place.row('/11/pipe')).toMatchObject({ state: 'left-out', reason: `it is ${kind}` });
    // A failure of another kind says nothing about that.
    place.remote.files.set('/11/pipe', new JobtailError('malformed', 'the response is damaged'));
    await requestsOf(place, 1, true);
    expect(place.row('/11/pipe')?.state).toBe(when === 'never' ? 'left-out' : 'failed');
    transfer.irregular.clear();
    transfer.contents.set('/11/pipe', 'a file by now');
    if (when !== 'never') place.remote.set('/11/pipe', 'a file by now');
    place.restarted(directBy(place, transfer, 'auto'));
    place.now += HOUR_MS;
    await place.sync();
    expect(place.row('/11/pipe')).toMatchObject({ state: 'synced' });
  });
});

const UNCLEAR =
  'the service refuses it like a link to a directory, or a file that the disk of the cluster fails to read';

describe('what the words of the service show to be no file', () => {
  const refusal = (inPlace: NoFile) => new JobtailError('fault', 'the service answered', { inPlace });

  it.each([false, true])('nothing: left out when the next listing has it, too, after a hang: %s', async (hasHung) => {
    const place = new ResultsPlace();
    if (hasHung) place.remote.files.set('/11/a', SILENT);
    if (hasHung) await place.sync();
    place.now += HOUR_MS;
    place.remote.files.set('/11/a', refusal('nothing'));
    expect(await place.sync()).toMatchObject({ failed: 0 });
    expect(place.row('/11/a')).toMatchObject({ state: 'listed', reason: expect.stringContaining('next listing') });
    expect(await place.sync()).toMatchObject({ failed: 0, leftOut: 1 });
    expect(place.row('/11/a')).toMatchObject({ state: 'left-out', reason: 'it is a link to a missing file' });
    expect(place.store.results.counts(JOB)).toMatchObject({ failed: 0, queued: 0, leftOut: 1 });
    // It leads to a file by now, whose disk fails.
    place.remote.files.set('/11/a', refusal('unclear'));
    await place.sync(true);
    expect(place.row('/11/a')).toMatchObject({ state: 'failed', reason: UNCLEAR });
    place.remote.set('/11/a', 'a file by now');
    await place.sync(true);
    expect(place.row('/11/a')).toMatchObject({ state: 'synced', reason: null });
  });

  it('a directory, or a disk of the cluster that fails: failed, unless SSH has shown a directory', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/read', 'read before');
    await place.sync();
    place.remote.files.set('/11/link', refusal('unclear'));
    place.remote.files.set('/11/read', refusal('unclear'));
    for (let pass = 0; pass < 3; pass++) expect(await place.sync(true)).toMatchObject({ failed: 2, leftOut: 0 });
    for (const name of ['/11/link', '/11/read'])
      expect(place.row(name)).toMatchObject({ state: 'failed', reason: UNCLEAR });
    // With auto, SSH is asked for what the service refuses so.
    withSsh(place, ({ irregular }) => irregular.set('/11/link', 'a link to a directory'));
    await place.sync(true);
    place.restarted();
    expect(await place.sync(true)).toMatchObject({ failed: 1, leftOut: 1 });
    expect(place.row('/11/link')).toMatchObject({ state: 'left-out', reason: 'it is a link to a directory' });
  });

  it('nothing, because it was removed after the listing: it is forgotten, or its copy stays as it was', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/old', 'old');
    await place.sync();
    for (const name of ['/11/old', '/11/new']) place.remote.files.set(name, refusal('nothing'));
    await place.sync(true);
    expect(place.row('/11/old')).toMatchObject({ state: 'in-flux' });
    expect(place.row('/11/new')).toMatchObject({ state: 'listed' });
    place.remote.files.clear();
    place.remote.set('/11/other', 'other');
    await place.sync(true);
    expect(place.row('/11/old')).toMatchObject({ state: 'synced', reason: null });
    expect(place.row('/11/new')).toBeUndefined();
  });

  it('unreadable: refused, which may not delay the end of its job, and fetched when it is readable', async () => {
    const place = new ResultsPlace();
    place.remote.files.set('/11/a', refusal('unreadable'));
    expect(await place.sync()).toMatchObject({ failed: 0, refused: 1 });
    expect(place.row('/11/a')).toMatchObject({
      state: 'refused',
      reason: 'the account on the cluster has no right to read it',
    });
    expect(place.store.results.counts(JOB)).toMatchObject({ failed: 1, refused: 1 });
    place.remote.downloads.length = 0;
    await place.sync();
    // Not due yet: no request in each sync.
    expect(place.remote.downloads).toEqual([]);
    place.remote.set('/11/a', 'readable');
    await place.sync(true);
    expect(place.row('/11/a')).toMatchObject({ state: 'synced', reason: null });
  });
});
