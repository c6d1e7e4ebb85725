/** Whose files and directories are: who may write them, and where links lead. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { isWritableByOthers, stepsTo } from '../../src/system/owners.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it.each([
  ['a directory of all', 0o40777, 7, true],
  ['a sticky directory of all', 0o41777, 7, false],
  ['a sticky file of all', 0o101666, 7, true],
  ['a directory of another group', 0o40770, 8, true],
  ['a directory of the group of the user alone', 0o40770, 7, false],
  ['a directory that others read', 0o40755, 8, false],
])('whether others can write %s', (_, mode, gid, isWritable) => {
  expect(isWritableByOthers({ mode, uid: 7, gid } as fs.Stats)).toBe(isWritable);
});

it('each link on the way to a file is followed, as far as there is something; those in a circle are refused', () => {
  const place = fs.realpathSync(temporaryDirectory());
  const at = (...names: string[]) => path.join(place, ...names);
  fs.mkdirSync(at('there', 'in'), { recursive: true });
  fs.symlinkSync('there', at('link'));
  fs.symlinkSync(at('link'), at('second'));
  fs.symlinkSync('circle', at('circle'));
  const own = stepsTo(at('second', 'in', 'absent')).map((step) => path.relative(place, step.at));
  // Behind a link, from the root on.
  expect(own.filter((step) => /\w/.test(step))).toEqual(['second', 'link', 'there', 'there/in']);
  expect(() => stepsTo(at('circle'))).toThrow(`${at('circle')} leads through too many links`);
});
