/** Results on which the service hangs: named pipes, and files that it reads for longer than a request may take. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { JobtailError } from '../../../../src/errors.ts';
import { expectCases } from '../../../support/errors.ts';
import { played, ResultsPlace } from '../place.ts';

const SILENT = new JobtailError('timeout', 'h:80 did not start to respond in time');

it('each sync of a file on which the service hangs, and that SSH may bring, does what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'hangs.txt'), played);
});

it('a file on which the service hangs is requested twice, also behind another one, and when a stop interrupts the second request', async () => {
  const place = new ResultsPlace();
  place.remote.set('/11/a', 'a');
  for (const name of ['/11/pipe', '/11/z']) place.remote.files.set(name, SILENT);
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
    place.now += 60_000;
    await place.sync(minute > 20);
  }
  for (const name of ['/11/pipe', '/11/z'])
    expect(place.remote.downloads.filter((one) => one === name)).toHaveLength(2);
});

it('a file that breaks off after its beginning has not hung', async () => {
  const place = new ResultsPlace();
  place.remote.set('/11/a', Buffer.alloc(5_000));
  place.remote.onPiece = () => Promise.reject(new JobtailError('timeout', 'h:80 sent nothing new'));
  await place.sync();
  expect(place.row('/11/a')).toMatchObject({ state: 'failed', hangs: 0 });
});
