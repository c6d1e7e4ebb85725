import { afterAll, expect, test } from 'vitest';
import type { SoapRemote } from '../../../../src/remote/soap/client.ts';
import { BROKEN } from '../../../support/wire-broken.ts';
import type { Broken } from '../../../support/wire-broken-http.ts';
import { createRemote, JOB, TASK } from '../../../support/wire-remote.ts';
import { expectFailure, type Protocol } from '../../../support/wire-suffering.ts';

const signal = new AbortController().signal;
const startBytes = process.memoryUsage().rss;

function call(remote: SoapRemote, operation: Broken['operation']): Promise<unknown> {
  switch (operation) {
    case 'DownloadFileFromCluster':
      return remote.downloadFile(JOB, '/a', () => undefined, signal);
    case 'ListChangedFilesForJob':
      return remote.listChangedFiles(JOB, signal);
    default:
      return remote.readParts(JOB, [{ taskId: TASK, file: 'stdout', offset: 0 }], signal);
  }
}

const SOAP: Protocol = {
  isEnd: (data) => data.toString().endsWith(':Envelope>'),
  connect(url, options, { operation }) {
    const { remote, close } = createRemote(url, options);
    return { call: () => call(remote, operation), close };
  },
};

test('there are enough of them', () => {
  expect(BROKEN.length).toBeGreaterThan(40);
});

test.each(BROKEN.map((broken) => [broken.what, broken] as const))('%s', async (_, broken) => {
  await expectFailure(broken, SOAP);
});

afterAll(() => {
  // Bounded, not exact: the garbage of all of them together.
  expect(process.memoryUsage().rss - startBytes).toBeLessThan(500 * 1024 * 1024);
});
