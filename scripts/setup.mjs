// Brings a fresh or changed checkout to where the other npm scripts can run: installs the locked
// packages if they are missing or stale, and builds dist/ if a source is newer than it. With --fleet also what
// setup-fleet.mjs brings: both compile the SQLite module, at the same time.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSignOfLife } from './sign-of-life.mjs';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** Shows what `command` complains about, and not what it lists. */
function run(what, command, args) {
  process.stderr.write(`jobtail: ${what}\n`);
  const done = withSignOfLife(`jobtail: ${what}`, () =>
    spawnSync(command, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] }),
  );
  if (done.error !== undefined) throw done.error;
  if (done.status === 0) return;
  process.stderr.write(`jobtail: failed: ${what}: ${command} ${args[0]} ended with ${done.status ?? done.signal}\n`);
  process.exit(done.status ?? 1);
}

function digestOf(files) {
  const texts = files.map((file) => `${file}\0${readFileSync(path.join(root, file), 'utf8')}\0`);
  return createHash('sha256').update(texts.join('')).digest('hex');
}

/** Runs `work` unless it already ran for exactly these inputs; the mark is written after it succeeded. */
function once(mark, inputs, work) {
  const file = path.join(root, mark);
  const digest = digestOf(inputs);
  if (existsSync(file) && readFileSync(file, 'utf8') === digest) return;
  work();
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, digest);
}

const sources = ['src', 'simulator']
  .flatMap((folder) => readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile())
  .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
  .sort();

// The native module is built for one Node: another major version needs another build.
const major = process.versions.node.split('.')[0];
let fleet;
const beginFleet = () => {
  if (!process.argv.includes('--fleet')) return;
  const args = ['--import', './scripts/typescript.mjs', 'scripts/setup-fleet.mjs'];
  fleet ??= spawn(process.execPath, args, { cwd: root, stdio: 'inherit' });
};
once(`node_modules/.jobtail-setup-node${major}`, ['npm-shrinkwrap.json'], () => {
  const options = ['--no-audit', '--no-fund'];
  run('installing packages', 'npm', ['ci', '--ignore-scripts', ...options]);
  beginFleet();
  const { allowScripts, optionalDependencies } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const [optional, needed] = [true, false].map((isOptional) =>
    Object.keys(allowScripts).filter((name) => name in optionalDependencies === isOptional),
  );
  run('compiling the SQLite module, for a minute or two, if it cannot be downloaded', 'npm', [
    ...['rebuild', ...needed],
    ...options,
  ]);
  spawnSync('npm', ['rebuild', ...optional, ...options], { cwd: root, stdio: 'ignore' });
});
const parts = ['page-assets', 'smaller-packages', 'third-party-licences'].map((name) => `scripts/${name}.mjs`);
const bundling = ['rolldown.config.mjs', ...parts];
const buildInputs = [...bundling, 'npm-shrinkwrap.json', ...sources];
once('dist/.jobtail-build', buildInputs, () => {
  // Built beside it and renamed: an agent that runs from here keeps a whole program at every moment but one.
  const [dist, built, old] = ['dist', 'dist.new', 'dist.old'].map((name) => path.join(root, name));
  for (const directory of [built, old]) rmSync(directory, { recursive: true, force: true });
  run('building', path.join(root, 'node_modules', '.bin', 'rolldown'), ['--config', '--dir', built]);
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(built, dist);
  rmSync(old, { recursive: true, force: true });
});
beginFleet();
if (fleet !== undefined)
  process.exitCode = await new Promise((resolve) => fleet.once('close', (code) => resolve(code ?? 1)));
