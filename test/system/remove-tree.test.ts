/** What is removed with a directory. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { removeTree, renameDirectory } from '../../src/system/remove-tree.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const withByte = (start: string) => Buffer.concat([Buffer.from(start), Buffer.from([0xff])]);

it('a directory is removed with names that are not UTF-8, and without what its links name', async () => {
  const parent = temporaryDirectory();
  fs.mkdirSync(path.join(parent, '501'));
  fs.mkdirSync(withByte(`${parent}/501/directory`));
  fs.writeFileSync(Buffer.concat([withByte(`${parent}/501/directory`), withByte('/file')]), 'four');
  fs.mkdirSync(path.join(parent, 'other'));
  fs.writeFileSync(path.join(parent, 'other', 'kept'), '');
  fs.symlinkSync(path.join(parent, 'other'), path.join(parent, '501', 'link'));
  // All are counted before the first is removed.
  fs.mkdirSync(path.join(parent, '501', 'many'));
  for (let file = 0; file < 100; file++) fs.writeFileSync(path.join(parent, '501', 'many', `${file}`), 'x');
  expect(await removeTree(parent, '501')).toEqual({ files: 102, bytes: 104 });
  expect(fs.readdirSync(parent)).toEqual(['other']);
  expect(fs.readdirSync(path.join(parent, 'other'))).toEqual(['kept']);
  expect(await removeTree(parent, '501'), 'what is gone').toEqual({ files: 0, bytes: 0 });
});

it.each(['lstat', 'readdir'] as const)('what another process removes before %s is no failure', async (before) => {
  const parent = temporaryDirectory();
  const inner = path.join(parent, '501', 'inner');
  fs.mkdirSync(inner, { recursive: true });
  fs.writeFileSync(path.join(parent, '501', 'file'), 'four');
  const call = fs.promises[before] as (file: Buffer, options?: object) => Promise<never>;
  const spy = vi.spyOn(fs.promises, before).mockImplementation((async (file: Buffer, options?: object) => {
    if (file.toString() === inner) fs.rmSync(inner, { recursive: true });
    return await call(file, options);
  }) as never);
  onTestFinished(() => spy.mockRestore());
  expect(await removeTree(parent, '501')).toEqual({ files: 1, bytes: 4 });
  expect(fs.readdirSync(parent)).toEqual([]);
});

it('a file or a link in the place of a directory is neither removed nor renamed', async () => {
  const parent = temporaryDirectory();
  const at = (name: string) => path.join(parent, name);
  fs.mkdirSync(at('501'));
  fs.symlinkSync('501', at('link'));
  fs.writeFileSync(at('file'), 'kept');
  for (const name of ['link', 'file']) {
    const refusal = { code: 'local-io', message: `${at(name)} is not a directory, and is not followed or replaced` };
    await expect(removeTree(parent, name)).rejects.toMatchObject(refusal);
    expect(() => renameDirectory(parent, name, 'new')).toThrow(expect.objectContaining(refusal));
  }
  renameDirectory(parent, 'absent', 'new');
  renameDirectory(parent, '501', '502');
  expect(fs.readdirSync(parent).sort()).toEqual(['502', 'file', 'link']);
  expect(() => renameDirectory(parent, '502', 'file/503')).toThrow(expect.objectContaining({ name: 'JobtailError' }));
});
