/** What is removed with a directory. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { removeTree } from '../../src/system/remove-tree.ts';
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
  expect(await removeTree(parent, '501')).toEqual({ files: 2, bytes: 4 });
  expect(fs.readdirSync(parent)).toEqual(['other']);
  expect(fs.readdirSync(path.join(parent, 'other'))).toEqual(['kept']);
  expect(await removeTree(parent, '501'), 'what is gone').toEqual({ files: 0, bytes: 0 });
});
