/** A Node.js that a fleet runs on: this one, or where it is too old, the one of `npm run setup:fleet`. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageFile } from '../src/system/package-file.ts';

const ROOT = path.dirname(packageFile('package.json'));
const [MAJOR = 0, MINOR = 0] = process.versions.node.split('.').map(Number);
const IS_NEW = MAJOR > 22 || (MAJOR === 22 && MINOR >= 12);

/** Where `npm run setup:fleet` puts what this machine has not. */
export const FLEET_PLACE = path.join(ROOT, '.fleet');

const OTHER = path.join(FLEET_PLACE, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');
const MODULES = pathToFileURL(path.join(ROOT, 'scripts', 'fleet-modules.mjs')).href;

/** argv before the program. */
export const FLEET_NODE: readonly string[] = IS_NEW ? [process.execPath] : [OTHER, '--import', MODULES];

export const isFleetNodeThere = (): boolean => IS_NEW || fs.existsSync(OTHER);

/** Loads the package `pg`. */
export const fleetRequire = createRequire(path.join(fs.existsSync(OTHER) ? FLEET_PLACE : ROOT, 'package.json'));
