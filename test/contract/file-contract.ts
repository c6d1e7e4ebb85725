/** The contract of DownloadFileFromCluster. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { failureOf } from '../support/errors.ts';
import { download, type Serve, signal } from './contract-place.ts';
import { type Dialect, JOB_ENDS, type ServedHabits } from './service.ts';
import { allBytes, HOSTILE_NAMES, IMPOSSIBLE_NAMES } from './texts.ts';

const OPERATION = 'DownloadFileFromCluster';
const NAME = '/701/result.bin';

export function fileContract(serve: Serve, dialect: Dialect): void {
  const { protocol, tokens } = dialect;
  const isSoap = protocol === 'soap';
  /** The path as it is asked for; over REST each release wants another one. */
  const asked = (name: string) => ({ path: isSoap ? name : expect.stringContaining(name) });

  test.each(JOB_ENDS)('gives the bytes of a file of job %s', async (jobId) => {
    expect(new Set(allBytes(256)).size).toBe(256);
    const lengths = [256, 1, 2, 3, 1024, 1025];
    const nameOf = (length: number) => `/701/result-${length}.bin`;
    const place = await serve({ jobId, files: new Map(lengths.map((length) => [nameOf(length), allBytes(length)])) });
    for (const length of lengths) {
      expect(await download(place, nameOf(length))).toEqual(allBytes(length));
      place.understood(OPERATION, asked(nameOf(length)));
    }
  });

  if (tokens)
    test('with a token instead of a session code', async () => {
      const place = await serve({ jobId: '501', files: new Map([[NAME, allBytes(7)]]) }, { grant: 'bearer' });
      expect(await download(place, NAME)).toEqual(allBytes(7));
      place.understood(OPERATION, asked(NAME));
    });

  test('an empty file is a file', async () => {
    const place = await serve({ jobId: '501', files: new Map([[NAME, Buffer.alloc(0)]]) });
    expect(await download(place, NAME)).toEqual(Buffer.alloc(0));
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

  if (isSoap)
    test.each<[string, Partial<ServedHabits>]>([
      ['an absent result', { missingFile: 'nil' }],
      ['a nil result', { missingFile: 'nil', nullMembers: true }],
    ])('takes %s for a missing file', async (_, habits) => {
      const place = await serve({ jobId: '501', habits });
      expect((await failureOf(download(place, NAME))).code).toBe('not-found');
    });

  test('may be answered with a fault for a missing file', async () => {
    const place = await serve({ jobId: '501', habits: { missingFile: 'fault' } });
    expect((await failureOf(download(place, NAME))).code).toBe('fault');
    place.understood(OPERATION, asked(NAME));
  });

  test('gives more than a megabyte', async () => {
    const bytes = allBytes(1024 * 1024 + 1);
    const place = await serve({ jobId: '501', files: new Map([[NAME, bytes]]) });
    const sha256 = (data: Buffer) => createHash('sha256').update(data).digest('hex');
    expect(sha256(await download(place, NAME))).toBe(sha256(bytes));
  });
}
