/** A native module that cannot be loaded: the agent names it, and what to do. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Place } from '../../support/e2e-place.ts';
import { Program } from '../../support/e2e-program.ts';

it.concurrent.for([
  ['was not built', 'MODULE_NOT_FOUND', "Cannot find module 'better-sqlite3/build/Release/better_sqlite3.node'"],
  ['is of another Node.js', 'ERR_DLOPEN_FAILED', 'compiled against a different Node.js version'],
] as const)('a native module that %s', async ([, code, message], context) => {
  const place = Place.make(context);
  place.configure({ baseUrl: 'http://127.0.0.1:1', username: 'alice', passwordFile: 'password' });
  const preload = path.join(place.directory, 'preload.cjs');
  fs.writeFileSync(
    preload,
    `process.dlopen = () => { throw Object.assign(new Error(${JSON.stringify(message)}), { code: '${code}' }); };`,
  );
  const node = [process.execPath, '--require', preload];
  const ended = await place.startAt(place.configFile, ['run'], { node }).ended;
  expect(ended.code).toBe(8);
  expect(ended.stderr).toContain(`cannot load the native module better-sqlite3: ${message}`);
  expect(ended.stderr).toContain('without one, use the archive that has its own Node.js (docs/install.md)');
  const program = new Program(['version', '--json'], { cwd: place.directory, node });
  expect(JSON.parse((await program.ended).stdout)).toMatchObject({
    sqlite: null,
    modules: { 'better-sqlite3': { error: expect.stringContaining(message) } },
  });
});
