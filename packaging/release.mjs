// Makes a release of the commit that is checked out: `npm run release -- --dry-run` makes and checks everything and
// changes nothing; without --dry-run it then puts the files into packages/ and sets the tag vVERSION. Nothing is uploaded.
//
// The commit is built twice, in two directories: both have to give the same bytes.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { exists, manifest, output, read, root, run } from './build.mjs';

const TOOLS = [
  'git',
  'tar',
  'gzip',
  'strip',
  'objdump',
  'dpkg-deb',
  'rpmbuild',
  'mmdebstrap',
  'buildah',
  'unshare',
  'sha256sum',
];
const { version } = manifest;
const tag = `v${version}`;
const isDryRun = process.argv.includes('--dry-run');

const say = (text) => writeSync(1, `${text}\n`);
const git = (...args) => read('git', args).trim();
/** Whatever is committed meanwhile. */
const commit = git('rev-parse', 'HEAD');

const place = mkdtempSync(path.join(os.tmpdir(), 'jobtail-release-'));
try {
  checkCommit();
  const [first, second] = ['first', 'second'].map(build);
  compare(first, second);
  say('trying the packages in empty systems');
  run('scripts/check-system-packages.sh', [], { cwd: first, environment: { BUILT: '1' } });
  say(readFileSync(path.join(first, 'packages', 'SHA256SUMS'), 'utf8').trimEnd());
  if (isDryRun) say(`${tag} can be released; nothing was changed`);
  else release(first);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
} finally {
  rmSync(place, { recursive: true, force: true });
}

/** @throws Error with all that keeps the commit from being released */
function checkCommit() {
  const lock = JSON.parse(readFileSync(path.join(root, 'npm-shrinkwrap.json'), 'utf8'));
  const changes = readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8');
  const missing = TOOLS.filter((tool) => !exists(tool));
  const problems = [
    git('status', '--porcelain') !== '' && 'the working tree has changes that are not committed',
    git('tag', '--list', tag) !== '' && `the tag ${tag} exists: set another version in package.json`,
    lock.version !== version && `npm-shrinkwrap.json has the version ${lock.version}, package.json ${version}`,
    !hasSection(changes) && `CHANGELOG.md has no section for ${version}`,
    missing.length > 0 && `these programs are not installed: ${missing.join(', ')}`,
    process.getuid() !== 0 && 'the packages are tried in roots of their own, which only root can make',
  ].filter((problem) => problem !== false);
  if (problems.length > 0) throw new Error(`${tag} cannot be released:\n  ${problems.join('\n  ')}`);
}

/** Before a release, the section is still called Unreleased. */
function hasSection(changes) {
  const names = [...changes.matchAll(/^## \[?([^\]\s]+)/gm)].map(([, name]) => name);
  return names.includes(version) || (isDryRun && names.includes('Unreleased'));
}

/** A clone of the commit with its packages. */
function build(name) {
  const clone = path.join(place, name);
  say(`building ${commit} in ${clone}`);
  run('git', ['clone', '--quiet', '--no-hardlinks', root, clone]);
  run('git', ['checkout', '--quiet', commit], { cwd: clone });
  run('npm', ['run', '--silent', 'package'], { cwd: clone });
  return clone;
}

function compare(first, second) {
  const sums = [first, second].map((clone) => readFileSync(path.join(clone, 'packages', 'SHA256SUMS'), 'utf8'));
  if (sums[0] !== sums[1]) throw new Error(`two builds of one commit differ:\n${sums.join('\n')}`);
  say('two builds of the commit are the same bytes');
}

function release(clone) {
  mkdirSync(output, { recursive: true });
  for (const line of readFileSync(path.join(clone, 'packages', 'SHA256SUMS'), 'utf8')
    .trim()
    .split('\n')) {
    const file = line.split('  ')[1];
    cpSync(path.join(clone, 'packages', file), path.join(output, file));
  }
  cpSync(path.join(clone, 'packages', 'SHA256SUMS'), path.join(output, 'SHA256SUMS'));
  run('git', ['tag', '--annotate', tag, '--message', `jobtail ${version}`, commit]);
  say(`the tag ${tag} is set, the files are in ${output}: upload both`);
}
