/** A Node.js that ends the process when an object of better-sqlite3 is collected (src/store/sql.ts) goes on. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { FLEET_NODE } from '../../../bench/fleet-node.ts';
import { needs } from '../../support/needs.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const TYPESCRIPT = new URL('../../../scripts/typescript.mjs', import.meta.url).href;
const WORKER = fileURLToPath(new URL('./store-collected.mjs', import.meta.url));

it('what is collected of a store ends no process', needs('postgres'), async () => {
  const [node = '', ...args] = FLEET_NODE;
  const ran = promisify(execFile)(node, [...args, '--import', TYPESCRIPT, WORKER, temporaryDirectory()]);
  expect((await ran).stdout).toBe('still there\n');
});
