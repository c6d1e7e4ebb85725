/** The disk of a directory: what is free there, and why nothing can be written. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { asJobtailError } from '../../src/errors.ts';
import { ownUserName } from '../../src/system/owners.ts';
import { isRefusedToUser, storageOf, whyNotWritable, withOwner } from '../../src/system/storage.ts';
import { openFilesIn, temporaryDirectory } from '../support/temp-directory.ts';

/** A call of the system that fails so, from now on; of rights: if all are wanted that a directory needs. */
function failing(call: 'accessSync' | 'openSync' | 'writeFileSync', code: string) {
  onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(fs, call).mockImplementation((_: unknown, mode: unknown) => {
    if (call === 'accessSync' && mode !== (fs.constants.W_OK | fs.constants.X_OK)) return 0;
    throw Object.assign(new Error(`${code}: refused, call`), { code, syscall: 'call' });
  });
}

it('of a directory that is not there, the nearest one above counts; a file in its place is named', async () => {
  const directory = temporaryDirectory();
  const at = (...names: string[]) => path.join(directory, ...names);
  expect(await storageOf(at('a', 'b'))).toMatchObject({ at: directory, error: undefined });
  fs.writeFileSync(at('file'), '');
  for (const below of [at('file'), at('file', 'a', 'b')])
    expect(await storageOf(below)).toMatchObject({
      at: at('file'),
      error: { message: `${at('file')} is no directory` },
    });
  fs.symlinkSync('circle', at('circle'));
  const { at: found, error } = await storageOf(at('circle', 'a'));
  expect([found, error?.message]).toEqual([directory, expect.stringContaining('ELOOP')]);
});

it('free are the blocks for users, and as many inodes as the file system has, if it has a limit', async () => {
  const statfs = vi.spyOn(fs.promises, 'statfs') as unknown as { mockResolvedValue(value: object): void };
  onTestFinished(() => void vi.restoreAllMocks());
  for (const [files, freeInodes] of [
    [100, 9],
    [0, Number.POSITIVE_INFINITY],
  ]) {
    statfs.mockResolvedValue({ bavail: 7, bfree: 8, bsize: 4_096, files, ffree: 9 });
    expect(await storageOf(temporaryDirectory())).toMatchObject({ freeBytes: 28_672, freeInodes });
  }
});

it('a directory can be written with a file in it, or not', () => {
  const directory = temporaryDirectory();
  expect([whyNotWritable(directory), fs.readdirSync(directory)]).toEqual([undefined, []]);
  const missing = path.join(directory, 'file');
  expect(whyNotWritable(directory, missing)?.message).toContain(`no such file or directory: ${missing}`);
});

it('what hinders writing is reported, but not that a file system has no files without names', () => {
  const codes = ['EOPNOTSUPP', 'ENOTSUP', 'EISDIR', 'ENOENT', 'EINVAL', 'ENOSYS', 'ENOSPC'];
  const failures = [['accessSync', 'EACCES'], ['writeFileSync', 'EDQUOT'], ...codes.map((code) => ['openSync', code])];
  const found = failures.map(([call, failure = '']) => {
    const directory = temporaryDirectory();
    failing(call as 'openSync', failure);
    const error = whyNotWritable(directory);
    vi.restoreAllMocks();
    expect([openFilesIn(directory), error?.message.includes(directory)]).toEqual([0, error && true]);
    return error?.code;
  });
  expect(found).toEqual(['permission', 'disk-full', ...Array(6).fill(undefined), 'disk-full']);
});

it('a refusal names the user who may write, and no other failure does', async () => {
  const directory = temporaryDirectory();
  failing('accessSync', 'EPERM');
  const { error } = await storageOf(directory);
  const user = ownUserName();
  expect(error?.message).toContain(`; ${directory} belongs to the user ${user}, this is ${user}`);
  expect(error?.hint).toBe(`run it as the user ${user}, or give the user ${user} the right to write ${directory}`);
  const refused = (code: string) => asJobtailError(Object.assign(new Error(code), { code, syscall: 'open' }));
  expect(['EACCES', 'EPERM', 'EROFS'].map((code) => isRefusedToUser(refused(code)))).toEqual([true, true, false]);
  const [readOnly, absent] = [refused('EROFS'), refused('EACCES')];
  expect(withOwner(readOnly, directory)).toBe(readOnly);
  expect(withOwner(absent, path.join(directory, 'absent'))).toBe(absent);
  expect(withOwner(refused('EACCES'), directory, 0)).toMatchObject({ cause: { code: 'EACCES' } });
});
