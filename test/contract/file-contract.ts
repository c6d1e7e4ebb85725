/** The contract of DownloadFileFromCluster. */
import { expect, test } from 'vitest';
import type { SandboxHabits } from '../../simulator/habits.ts';
import { JobtailError } from '../../src/errors.ts';
import { failureOf } from '../support/errors.ts';
import { download, type Serve, signal } from './contract-place.ts';
import { type Dialect, JOB_ENDS } from './service.ts';
import { allBytes, HOSTILE_NAMES, IMPOSSIBLE_NAMES } from './texts.ts';

const OPERATION = 'DownloadFileFromCluster';
const NAME = '/701/result.bin';

export function fileContract(serve: Serve, dialect: Dialect): void {
  const isSoap = dialect.protocol === 'soap';
  /** The path as it is asked for; over REST each release wants another one. */
  const asked = (name: string) => ({ path: isSoap ? name : expect.stringContaining(name) });

  test.each(JOB_ENDS)('gives the bytes of a file of job %s', async (jobId) => {
    expect(new Set(allBytes(256)).size).toBe(256);
    const lengths = [256, 0, 1, 2, 3, 1024, 1025];
    const nameOf = (length: number) => `/701/result-${length}.bin`;
    const place = await serve({ jobId, files: new Map(lengths.map((length) => [nameOf(length), allBytes(length)])) });
    for (const length of lengths) {
      expect(await download(place, nameOf(length))).toEqual(allBytes(length));
      place.understood(OPERATION, asked(nameOf(length)));
    }
  });

  test('rejects with the error by which a sink ends the download', async () => {
    const place = await serve({ jobId: '501', files: new Map([[NAME, allBytes(256)]]) });
    for (const [thrown, code] of [
      [new JobtailError('aborted', 'enough'), 'aborted'],
      [new Error('a defect'), 'internal'],
    ] as const) {
      const end = () => {
        throw thrown;
      };
      const error = await failureOf(place.remote.downloadFile(place.jobId, NAME, end, signal));
      expect([error.code, error === thrown]).toEqual([code, code === 'aborted']);
    }
  });

  if (isSoap)
    test('asks for every name as it is listed', async () => {
      const names = [...HOSTILE_NAMES, ...IMPOSSIBLE_NAMES];
      // Each file holds its own name, so that no other one can pass for it.
      const place = await serve({
        jobId: '501',
        files: new Map(names.map((name) => [name, Buffer.from(`<${name}>`)])),
      });
      for (const name of await place.remote.listChangedFiles(place.jobId, signal)) {
        expect(String(await download(place, name))).toBe(`<${name}>`);
        place.understood(OPERATION, { path: name });
      }
    });

  const missing: [what: string, habits: Partial<SandboxHabits>, code: string][] = [
    ['an absent result', { missingFile: 'nil' }, 'not-found'],
    ['a nil result', { missingFile: 'nil', nullMembers: true }, 'not-found'],
    ['a fault', { missingFile: 'fault' }, 'fault'],
  ];
  test.each(isSoap ? missing : missing.slice(2))('takes %s for a missing file', async (_, habits, code) => {
    const place = await serve({ jobId: '501', habits });
    expect((await failureOf(download(place, NAME))).code).toBe(code);
    place.understood(OPERATION, asked(NAME));
  });
}
