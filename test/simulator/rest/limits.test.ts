/** Bodies up to the last byte that a release takes, and one more (docs/rest.md 2). */
import { describe, expect, it } from 'vitest';
import type { ReleaseName } from '../../../simulator/rest/releases.ts';
import { ALICE, startSandbox } from '../support.ts';
import { FILE, LISTING, PARTS, post, startJob, USERS } from './support.ts';

/** Bytes: password, token, parts, listing by POST, whole file, end of the key; and the answer to one more. */
const LIMITS: readonly (readonly [ReleaseName, readonly (number | null)[], 'page' | 413 | 400 | 'empty'])[] = [
  ['2.0', [220, 15_000, 452, 80, 372, 4600], 'page'],
  ['2.1', [148, 2048, 480, 98, 378, 4600], 'page'],
  ['2.2', [148, 2048, 480, 98, 378, 4600], 'page'],
  ['3.1', [148, 2048, 480, 98, 378, 4700], 'page'],
  ['4.0', [148, 2048, 480, 98, 378, null], 413],
  ['4.1', [148, 2048, 480, 98, 378, 4700], 413],
  ['4.2.0', [148, 4096, 480, null, 378, null], 413],
  ['4.2', [148, 4096, 480, null, 378, null], 413],
  ['4.3', [148, 4096, 480, null, 700, null], 400],
  ['5.0', [148, 4096, 480, null, 700, null], 400],
  ['6.2', [148, 4096, 480, null, 700, null], 'empty'],
  ['6.3', [148, 4096, 480, null, 700, null], 'empty'],
  ['6.4', [148, 4096, 480, null, 700, null], 'empty'],
];

const PATHS = [
  `${USERS}/AuthenticateUserPassword`,
  `${USERS}/AuthenticateUserOpenId`,
  PARTS,
  LISTING,
  FILE,
  'FileTransfer/EndFileTransfer',
];

describe('the size of requests', () => {
  it.each(LIMITS)('of %s is counted in bytes', async (release, limits, beyond) => {
    const { sandbox } = await startJob(release);
    for (const [index, limit] of limits.entries()) {
      const path = PATHS[index] ?? '';
      if (limit === null) continue;
      // Blanks are bytes, too, and é is two of them.
      const body = (bytes: number) => `{"é":""${' '.repeat(bytes - 9)}}`;
      expect(Buffer.byteLength(body(limit))).toBe(limit);
      const within = await post(sandbox, path, body(limit));
      expect(within.status, path).not.toBe(413);
      expect(within.text, path).not.toMatch(/too large|Status Code/);
      const { status, text, json, headers } = await post(sandbox, path, body(limit + 1));
      expect(status, path).toBe(beyond === 'empty' ? 413 : beyond === 'page' ? 400 : beyond);
      if (beyond === 'empty') expect([text, headers.get('connection')]).toEqual(['', 'close']);
      else if (beyond === 'page') expect(text).toMatch(/^Status Code: 400; Bad Request {500}$/);
      else expect(json).toMatchObject({ title: expect.stringMatching(/^Request body too large\./), status });
    }
  });

  it('lets a user name and a password of together 103 bytes in, and no longer ones', async () => {
    const user = { ...ALICE, password: 'p'.repeat(103 - ALICE.username.length) };
    const sandbox = await startSandbox({ users: [user] });
    const signIn = (Password: string) =>
      post(sandbox, `${USERS}/AuthenticateUserPassword`, { Credentials: { Username: 'alice', Password } });
    expect(await signIn(user.password)).toMatchObject({ status: 200 });
    expect(await signIn(`${user.password}p`)).toMatchObject({ status: 413, text: '' });
  });

  it.each(['2.0', '2.1', '6.4'] as const)('lets the four files of one task pass: %s', async (release) => {
    const { sandbox, session } = await startJob(release);
    const TaskFileOffsets = [0, 1, 2, 3].map((FileType) => ({
      SubmittedTaskInfoId: 9001,
      FileType,
      Offset: 12_345_678_901,
    }));
    const body = { SubmittedJobInfoId: 501, TaskFileOffsets, SessionCode: session };
    expect(await post(sandbox, PARTS, body)).toMatchObject({ status: 200 });
  });

  it('has room for eight entries nowhere', async () => {
    const { sandbox, session } = await startJob('6.3');
    const entry = { SubmittedTaskInfoId: 9001, FileType: 0, Offset: 0 };
    const body = { SubmittedJobInfoId: 501, TaskFileOffsets: Array(8).fill(entry), SessionCode: session };
    expect(await post(sandbox, PARTS, body)).toMatchObject({ status: 413 });
  });
});
