/** A Node.js that a fleet runs on, and what else the tests of one need of the machine. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestOptions } from 'vitest';
import { FLEET_PLACE, needs, needsThat } from './needs.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const [MAJOR = 0, MINOR = 0] = process.versions.node.split('.').map(Number);
/** This one will do. */
const IS_NEW = MAJOR > 22 || (MAJOR === 22 && MINOR >= 12);
/** The one of `npm run setup:fleet`. */
const OTHER = path.join(FLEET_PLACE, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');

/** argv before the program. */
export const FLEET_NODE: readonly string[] = IS_NEW
  ? [process.execPath]
  : [OTHER, '--import', new URL('../../scripts/fleet-modules.mjs', import.meta.url).href];

/** Loads the packages that pg-boss brings. */
export const fleetRequire = createRequire(path.join(IS_NEW ? ROOT : FLEET_PLACE, 'package.json'));

/** The options of a test or a suite that starts a fleet: it is skipped where that cannot be. */
export function needsFleet(): TestOptions & { readonly skip: boolean } {
  const isNodeThere = IS_NEW || fs.existsSync(OTHER);
  const node = needsThat(
    isNodeThere,
    'a fleet needs Node.js 22.12 or newer; to get one for the tests: npm run setup:fleet',
  );
  const database = needs('postgres');
  return { ...database, skip: node.skip || database.skip };
}
