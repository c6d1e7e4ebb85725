// Makes the archive that runs where it is unpacked: jobtail-VERSION-linux-ARCH.tar.gz with its own Node.js, the program,
// its native modules (for glibc 2.28 and later) and everything a fleet needs. Beside it: SHA256SUMS and an SBOM.
// The same commit gives the same bytes. `npm run package`; what it makes lies in packages/.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { licenceOf } from '../scripts/third-party-licences.mjs';
import { billOfMaterials } from './bill-of-materials.mjs';
import { commitTime, digest, kind, manifest, output, read, root, run, work } from './build.mjs';
import { NODE_VERSION } from './node-version.mjs';
import { systemPackages } from './system-packages.mjs';

const OLDEST = { GLIBC: '2.28', GLIBCXX: '3.4.25', CXXABI: '1.3.11' };
/** Packages that only build native modules. */
const BUILD_ONLY = ['prebuild-install', 'nan'];
const NATIVE = { 'better-sqlite3': 'build/Release/better_sqlite3.node', 'unix-dgram': 'build/Release/unix_dgram.node' };
/** What a package carries for its own build and tests, or for other programs. */
const UNUSED =
  /^(?:deps|src|test|tests|docs|examples|\.github|\.npmignore|binding\.gyp|tsconfig.*|.*\.(?:md|markdown|map|ts|mts|cts|flow|tsbuildinfo|test\.js))$/i;

/** Its source is a part of better-sqlite3. */
const SQLITE_LICENCE = `${'='.repeat(80)}
SQLite

The author disclaims copyright to this source code. It is in the public domain: https://www.sqlite.org/copyright.html
`;

const { version, files } = manifest;
const lock = JSON.parse(readFileSync(path.join(root, 'npm-shrinkwrap.json'), 'utf8')).packages;
const name = `jobtail-${version}-${kind}`;
const tree = path.join(work, name);
const program = path.join(tree, 'lib', 'jobtail');

if (process.platform !== 'linux') throw new Error('the archive is made on Linux, on the processor that it is for');

const node = fetchNode();
const withNode = { PATH: `${path.join(node, 'bin')}${path.delimiter}${process.env.PATH}`, npm_config_nodedir: node };

run(process.execPath, ['scripts/setup.mjs']);
rmSync(tree, { recursive: true, force: true });
mkdirSync(program, { recursive: true });
copyProgram();
const modules = installModules();
copyNode();
writeFileSync(
  path.join(tree, 'sbom.cdx.json'),
  billOfMaterials({ root, version, nodeVersion: NODE_VERSION, sqliteVersion: sqliteVersion(), modules, commitTime }),
);
// Under their final names only when all of them are whole: what is there until then is of one earlier build.
const built = [pack(), ...systemPackages(tree)];
writeFileSync(path.join(work, 'SHA256SUMS'), built.map((file) => `${digest(file)}  ${path.basename(file)}\n`).join(''));
const [, ...made] = [path.join(work, 'SHA256SUMS'), ...built].map((file) => {
  const place = path.join(output, path.basename(file));
  renameSync(file, place);
  return place;
});
for (const file of made) {
  process.stdout.write(`${path.relative(root, file)}, ${(statSync(file).size / 1e6).toFixed(1)} MB\n`);
}

function fetchNode() {
  const place = path.join(work, `node-${NODE_VERSION}`);
  const directory = path.join(place, 'node_modules', `node-${kind}`);
  if (!existsSync(path.join(directory, 'bin', 'node'))) {
    mkdirSync(place, { recursive: true });
    writeFileSync(path.join(place, 'package.json'), '{"private":true}');
    run('npm', ['install', '--silent', '--no-audit', '--no-fund', '--ignore-scripts', `node-${kind}@${NODE_VERSION}`], {
      cwd: place,
    });
  }
  return directory;
}

/** The files of the npm package, the pages of the manual and the completions where a system looks for them. */
function copyProgram() {
  for (const file of ['package.json', ...files.filter((one) => !one.startsWith('!'))]) {
    cpSync(path.join(root, file), path.join(program, file), { recursive: true });
  }
  for (const unused of files.filter((one) => one.startsWith('!'))) {
    rmSync(path.join(program, unused.slice(1)), { recursive: true, force: true });
  }
  removeBelow(path.join(program, 'dist'), /\.map$|^\.jobtail-build$/);
  const share = path.join(tree, 'share');
  const completions = {
    bash: 'bash-completion/completions/agent',
    zsh: 'zsh/site-functions/_agent',
    fish: 'fish/vendor_completions.d/agent.fish',
  };
  for (const [shell, file] of Object.entries(completions)) {
    mkdirSync(path.dirname(path.join(share, file)), { recursive: true });
    writeFileSync(path.join(share, file), read(process.execPath, ['dist/cli/main.js', 'completion', shell]));
  }
  mkdirSync(path.join(share, 'man', 'man1'), { recursive: true });
  for (const page of ['agent.1', 'jobtail.1'])
    cpSync(path.join(root, 'docs', page), path.join(share, 'man', 'man1', page));
  for (const file of ['README.md', 'LICENSE']) cpSync(path.join(root, file), path.join(tree, file));
  mkdirSync(path.join(tree, 'bin'));
  writeFileSync(path.join(tree, 'bin', 'agent'), readFileSync(path.join(root, 'packaging', 'agent.sh')));
  chmodSync(path.join(tree, 'bin', 'agent'), 0o755);
  symlinkSync('agent', path.join(tree, 'bin', 'jobtail'));
}

/** The locked packages that run, without what builds them; returns their places in the lock file. */
function installModules() {
  cpSync(path.join(root, 'npm-shrinkwrap.json'), path.join(program, 'npm-shrinkwrap.json'));
  run('npm', ['ci', '--silent', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: program,
    environment: withNode,
  });
  const flags = `-D_GNU_SOURCE -include ${path.join(root, 'packaging', 'glibc-2.28.h')} -ffile-prefix-map=${program}=.`;
  const compiler = {
    CFLAGS: flags,
    CXXFLAGS: flags,
    LDFLAGS: '-Wl,--build-id=none',
    npm_config_build_from_source: 'true',
  };
  run('npm', ['rebuild', '--silent', ...Object.keys(NATIVE)], {
    cwd: program,
    environment: { ...withNode, ...compiler },
  });
  const directories = Object.keys(lock).filter(
    (one) => existsSync(path.join(program, one, 'package.json')) && one !== '',
  );
  const running = runningModules();
  // Before they are trimmed: some packages have their licence in a readme only.
  const licences = [...running].sort().filter((one) => existsSync(path.join(program, one)));
  mkdirSync(path.join(tree, 'lib'), { recursive: true });
  writeFileSync(
    path.join(tree, 'lib', 'LICENSES.modules'),
    [...licences.map((one) => licenceOf(path.join(program, one))), SQLITE_LICENCE].join('\n'),
  );
  for (const directory of directories.sort()) {
    const place = path.join(program, directory);
    if (!running.has(directory)) rmSync(place, { recursive: true, force: true });
    else trim(place, NATIVE[directory.replace('node_modules/', '')]);
  }
  rmSync(path.join(program, 'node_modules', '.bin'), { recursive: true, force: true });
  rmSync(path.join(program, 'node_modules', '.package-lock.json'), { force: true });
  rmSync(path.join(program, 'npm-shrinkwrap.json'));
  return [...running].sort();
}

/** Places in the lock file of what the program loads: its dependencies, theirs and so on. */
function runningModules() {
  const running = new Set();
  const visit = (dependencies, from) => {
    for (const dependency of Object.keys(dependencies ?? {})) {
      const nested = `${from}/node_modules/${dependency}`.replace(/^\//, '');
      const place = nested in lock ? nested : `node_modules/${dependency}`;
      if (BUILD_ONLY.includes(dependency) || running.has(place) || !(place in lock)) continue;
      running.add(place);
      visit(lock[place].dependencies, place);
      visit(lock[place].optionalDependencies, place);
    }
  };
  visit(lock[''].dependencies, '');
  visit(lock[''].optionalDependencies, '');
  return running;
}

/** Leaves of a package what runs and its licence; `native` is its compiled module. */
function trim(directory, native) {
  const compiled = native === undefined ? undefined : readFileSync(path.join(directory, native));
  if (native !== undefined) rmSync(path.join(directory, 'build'), { recursive: true });
  for (const file of readdirSync(directory)) {
    const isNeeded = native !== undefined && file === 'src' && existsSync(path.join(directory, 'src', 'index.js'));
    if (UNUSED.test(file) && !isNeeded && !/licen[cs]e/i.test(file))
      rmSync(path.join(directory, file), { recursive: true });
  }
  removeBelow(directory, /\.(?:map|d\.ts|d\.mts|d\.cts|md|flow)$/);
  if (compiled === undefined) return;
  const file = path.join(directory, native);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, compiled);
  run('strip', ['--strip-unneeded', file]);
  refuseNewSymbols(file);
}

function refuseNewSymbols(file) {
  const symbols = read('objdump', ['-T', file]);
  for (const [, library, needed] of symbols.matchAll(/\((GLIBC|GLIBCXX|CXXABI)_([0-9.]+)\)/g)) {
    if (needed.localeCompare(OLDEST[library], 'en', { numeric: true }) > 0) {
      throw new Error(`${path.basename(file)} needs ${library}_${needed}: bind it to an older one in glibc-2.28.h`);
    }
  }
}

/** By the program that is shipped, which also shows that it runs. */
function sqliteVersion() {
  return JSON.parse(read(path.join(tree, 'bin', 'agent'), ['version', '--json'])).sqlite;
}

function copyNode() {
  cpSync(path.join(node, 'bin', 'node'), path.join(tree, 'lib', 'node'));
  run('strip', [path.join(tree, 'lib', 'node')]);
  refuseNewSymbols(path.join(tree, 'lib', 'node'));
  cpSync(path.join(node, 'LICENSE'), path.join(tree, 'lib', 'LICENSE.node'));
}

function removeBelow(directory, pattern) {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const place = path.join(directory, entry.name);
    if (entry.isDirectory()) removeBelow(place, pattern);
    else if (pattern.test(entry.name) && !/^(?:licen[cs]e|copying|notice)/i.test(entry.name)) rmSync(place);
  }
}

/** Sorted names, one time, one owner, one mode: the same files give the same bytes. */
function pack() {
  const tar = path.join(work, `${name}.tar`);
  const same = ['--sort=name', `--mtime=@${commitTime}`, '--owner=0', '--group=0', '--numeric-owner', '--format=gnu'];
  run('tar', [...same, '--mode=u+rwX,go+rX,go-w', '-C', work, '-cf', tar, name]);
  run('gzip', ['-9', '-n', '-f', tar]);
  return `${tar}.gz`;
}
