/** What `npm run setup:fleet` puts into a checkout: the Node.js that the packages ship, and a PostgreSQL. */
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageFile } from '../src/system/package-file.ts';

const ROOT = path.dirname(packageFile('package.json'));

export const FLEET_PLACE = path.join(ROOT, '.fleet');

const SHIPPED = path.join(FLEET_PLACE, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');
const MODULES = pathToFileURL(path.join(ROOT, 'scripts', 'fleet-modules.mjs')).href;

/** The Node.js that the packages ship, or this one where it is not installed: argv before the program. */
export const FLEET_NODE: readonly string[] = fs.existsSync(SHIPPED)
  ? [SHIPPED, '--import', MODULES]
  : [process.execPath];
