import { afterAll, expect, test } from 'vitest';
import type { Broken } from '../../../support/wire-broken-http.ts';
import { BROKEN_JSON } from '../../../support/wire-broken-json.ts';
import { JOB, TASK } from '../../../support/wire-remote.ts';
import { createRest, type TestRest } from '../../../support/wire-rest.ts';
import { expectFailure, type Protocol } from '../../../support/wire-suffering.ts';

const signal = new AbortController().signal;
const startBytes = process.memoryUsage().rss;

function call({ remote, jobs }: TestRest, operation: Broken['operation']): Promise<unknown> {
  switch (operation) {
    case 'DownloadFileFromCluster':
      return remote.downloadFile(JOB, '/a', () => undefined, signal);
    case 'ListChangedFilesForJob':
      return remote.listChangedFiles(JOB, signal);
    case 'GetCurrentInfoForJob':
      return jobs.getJob(JOB, signal);
    default:
      return remote.readParts(JOB, [{ taskId: TASK, file: 'stdout', offset: 0 }], signal);
  }
}

const REST: Protocol = {
  isEnd(data) {
    const text = data.toString();
    return text.endsWith('}') || (text.startsWith('GET ') && text.endsWith('\r\n\r\n'));
  },
  connect(url, options, { operation }) {
    const made = createRest(url, options);
    // Nothing of a broken answer is believed.
    const believed = () => expect(made.kept.has('rest-path')).toBe(false);
    return { call: () => call(made, operation).finally(believed), close: made.close };
  },
};

test('there are enough of them', () => {
  expect(BROKEN_JSON.length).toBeGreaterThan(60);
});

test.each(BROKEN_JSON.map((broken) => [broken.what, broken] as const))('%s', async (_, broken) => {
  await expectFailure(broken, REST);
});

afterAll(() => {
  // Bounded, not exact: the garbage of all of them together.
  expect(process.memoryUsage().rss - startBytes).toBeLessThan(500 * 1024 * 1024);
});
