/** Whose files and directories are: who may write them, and where links lead. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { keepFile, keptFile } from '../../src/system/kept-files.ts';
import { isOfRoot, isWritableByOthers, stepsTo } from '../../src/system/owners.ts';
import { needsThat } from '../support/needs.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it('others can write what is open to all or to another group, but replace nothing in a sticky directory', () => {
  /** The groups, by the modes. */
  const areWritable = (modes: Readonly<Record<number, number>>) =>
    Object.entries(modes).map(([mode, gid]) => isWritableByOthers({ mode: Number(mode), uid: 7, gid } as fs.Stats));
  const open = { [0o40777]: 7, [0o40770]: 8, [0o101666]: 7 };
  const closed = { [0o41777]: 7, [0o40770]: 7, [0o40755]: 8 };
  expect([areWritable(open), areWritable(closed)]).toEqual([Array(3).fill(true), Array(3).fill(false)]);
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

const AS_ROOT = needsThat(process.geteuid?.() === 0, 'files of root: only root can make them');

it('a file is of root if no other user can replace it or a directory or link on the way to it', AS_ROOT, () => {
  const place = temporaryDirectory();
  const at = (...names: string[]) => path.join(place, ...names);
  fs.mkdirSync(at('in'), { mode: 0o755 });
  fs.writeFileSync(at('in', 'file'), '', { mode: 0o644 });
  fs.symlinkSync('in', at('link'));
  const isStillOfRoot = () => isOfRoot(at('link', 'file'));
  const changes: ((isOpen: boolean) => void)[] = [
    (isOpen) => fs.chmodSync(at('in', 'file'), isOpen ? 0o646 : 0o644),
    (isOpen) => fs.chmodSync(at('in'), isOpen ? 0o757 : 0o755),
    (isOpen) => fs.chownSync(at('in'), isOpen ? 7 : 0, 0),
    (isOpen) => fs.lchownSync(at('link'), isOpen ? 7 : 0, 0),
  ];
  const found = changes.flatMap((change) =>
    [true, false].map((isOpen) => {
      change(isOpen);
      return isStillOfRoot();
    }),
  );
  expect(found).toEqual(Array(4).fill([false, true]).flat());
});

it('root keeps small files of its own alone, as they were, for the user who it becomes', AS_ROOT, () => {
  const place = temporaryDirectory();
  const kept = (name: string, bytes: number, more = (_: string) => {}) => {
    const file = path.join(place, name);
    fs.writeFileSync(file, Buffer.alloc(bytes, 'a'), { mode: 0o600 });
    more(file);
    keepFile(path.relative('.', file));
    fs.rmSync(file, { recursive: true, force: true });
    return keptFile(path.join(place, 'x', '..', name))?.length;
  };
  expect(kept('file', 1024 * 1024)).toBe(1024 * 1024);
  expect(kept('large', 1024 * 1024 + 1)).toBeUndefined();
  expect(kept('other', 1, (file) => fs.chownSync(file, 7, 0))).toBeUndefined();
  expect(kept('pipe', 1, (file) => execFileSync('sh', ['-c', 'rm "$0" && mkfifo "$0"', file]))).toBeUndefined();
  expect(kept('absent', 1, (file) => fs.rmSync(file))).toBeUndefined();
});
