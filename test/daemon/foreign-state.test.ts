/** A state directory that another user owns or can write is no state of this agent. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, type TestContext } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { openOwnStore } from '../../src/daemon/own-state.ts';
import { MINIMAL } from '../config/files.ts';
import { SILENT } from '../support/errors.ts';
import { needsThat } from '../support/needs.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

async function place(context: TestContext) {
  const directory = temporaryDirectory();
  const state = path.join(directory, 'state');
  const file = path.join(directory, 'config.yaml');
  fs.writeFileSync(path.join(directory, 'password'), 'secret', { mode: 0o600 });
  fs.writeFileSync(file, `${MINIMAL}mirror: {directory: ${directory}/mirror}\nstate: {directory: ${state}}\n`);
  const config = await loadConfig(file);
  const open = () => {
    const owned = openOwnStore(config, SILENT);
    context.onTestFinished(() => owned.close());
  };
  return { state, open };
}

it.for([0o777, 0o757])('a state directory with mode %o is refused, and left as it is', async (mode, context) => {
  const { state, open } = await place(context);
  fs.mkdirSync(state);
  fs.chmodSync(state, mode);
  expect(open).toThrow(`the state in ${state} can be written by other users`);
  expect(fs.readdirSync(state)).toEqual([]);
});

const AS_ROOT = needsThat(process.getuid?.() === 0, 'a state of another user: it needs root');

it('a state directory of another user is refused, and left as it is', AS_ROOT, async (context) => {
  const { state, open } = await place(context);
  fs.mkdirSync(state, { mode: 0o700 });
  fs.chownSync(state, 4_711, 4_711);
  expect(open).toThrow(`the state in ${state} belongs to the user 4711, not to root`);
  expect(fs.readdirSync(state)).toEqual([]);
});

it('a state directory that only this user can write is taken, and narrowed to this user', async (context) => {
  const { state, open } = await place(context);
  fs.mkdirSync(state, { mode: 0o755 });
  open();
  expect(fs.statSync(state).mode & 0o777).toBe(0o700);
});
