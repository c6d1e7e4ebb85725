import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { packageFile } from '../../src/system/package-file.ts';

it('finds a file of the package, wherever the source that asks was put', () => {
  expect(packageFile('config.example.yaml')).toBe(fileURLToPath(new URL('../../config.example.yaml', import.meta.url)));
});

it('says that there is no such file', () => {
  expect(() => packageFile('no-such-file')).toThrow('no-such-file');
});

it('the programs that are started by their names are built', () => {
  for (const name of ['dist/cli/main.js', 'dist/simulator/demo/demo-task.js']) {
    expect(fs.statSync(packageFile(name)).isFile()).toBe(true);
  }
});
