// A .deb and an .rpm out of the tree of the archive (package.mjs), with the units, the manual page and the completions in
// the places of a system. Each only where its tool is installed (dpkg-deb; rpmbuild).
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { commitTime, exists, manifest, root, run, work } from './build.mjs';

const { version, description } = manifest;
const environment = { SOURCE_DATE_EPOCH: commitTime };
/** For a check of what is in them: quick to make, and larger. */
const isQuick = process.env.JOBTAIL_QUICK_PACKAGES === '1';
const ARCHITECTURES = { x64: ['amd64', 'x86_64'], arm64: ['arm64', 'aarch64'] };
const [debArchitecture, rpmArchitecture] = ARCHITECTURES[process.arch] ?? [];

/** The files made, of those that can be made here. */
export function systemPackages(tree) {
  return [
    ...(exists('dpkg-deb') ? [makeDeb(layOut(tree, 'deb', 'vendor-completions'))] : missing('.deb', 'dpkg-deb')),
    ...(exists('rpmbuild') ? [makeRpm(layOut(tree, 'rpm', 'site-functions'))] : missing('.rpm', 'rpmbuild')),
  ];
}

function missing(kind, command) {
  process.stderr.write(`no ${kind}: ${command} is not installed\n`);
  return [];
}

/** The tree as it is installed below /. */
function layOut(tree, name, zshDirectory) {
  const place = path.join(work, name);
  rmSync(place, { recursive: true, force: true });
  const to = (...parts) => {
    const file = path.join(place, ...parts);
    mkdirSync(path.dirname(file), { recursive: true });
    return file;
  };
  cpSync(tree, to('usr/lib/jobtail'), { recursive: true, verbatimSymlinks: true });
  renameSync(path.join(place, 'usr/lib/jobtail/share'), to('usr/share'));
  if (zshDirectory !== 'site-functions')
    renameSync(to('usr/share/zsh/site-functions'), to('usr/share/zsh', zshDirectory));
  for (const page of ['agent.1', 'jobtail.1']) run('gzip', ['-9', '-n', path.join(place, 'usr/share/man/man1', page)]);
  for (const name of ['agent', 'jobtail']) symlinkSync(`../lib/jobtail/bin/${name}`, to(`usr/bin/${name}`));
  for (const unit of ['agent.service', 'agent@.service']) {
    cpSync(path.join(root, 'systemd', unit), to('usr/lib/systemd/system', unit));
  }
  // As in a checkout, so that the links between them lead somewhere.
  for (const file of ['README.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'config.example.yaml', 'docs']) {
    cpSync(path.join(place, 'usr/lib/jobtail/lib/jobtail', file), to('usr/share/doc/jobtail', file), {
      recursive: true,
    });
  }
  cpSync(path.join(root, 'LICENSE'), to('usr/share/doc/jobtail/copyright'));
  // Where tools of Debian look for it.
  cpSync(path.join(root, 'CHANGELOG.md'), to('usr/share/doc/jobtail/changelog'));
  run('gzip', ['-9', '-n', path.join(place, 'usr/share/doc/jobtail/changelog')]);
  mkdirSync(to('etc/agent'));
  run('chmod', ['-R', 'u+rwX,go+rX,go-w', place]);
  return place;
}

const OVERRIDES = `# Its own Node.js, as its project builds it
jobtail: embedded-library *
# There is no public address yet
jobtail: bogus-mail-host *
`;

function makeDeb(place) {
  const control = path.join(place, 'DEBIAN');
  mkdirSync(control);
  for (const script of readdirSync(path.join(root, 'packaging/deb'))) {
    cpSync(path.join(root, 'packaging/deb', script), path.join(control, script));
    chmodSync(path.join(control, script), 0o755);
  }
  const fields = {
    Package: 'jobtail',
    Version: version,
    Architecture: debArchitecture,
    Maintainer: 'The jobtail maintainers <jobtail@localhost>',
    'Installed-Size': String(Math.ceil(sizeOf(place) / 1024)),
    Depends: 'libc6 (>= 2.28), libstdc++6, passwd',
    Recommends: 'openssh-client, rsync',
    Section: 'net',
    Priority: 'optional',
    Description: `byte-exact local mirrors of the output of cluster jobs\n ${description}`,
  };
  writeFileSync(
    path.join(control, 'control'),
    Object.entries(fields)
      .map(([key, value]) => `${key}: ${value}\n`)
      .join(''),
  );
  const overrides = path.join(place, 'usr/share/lintian/overrides');
  mkdirSync(overrides, { recursive: true });
  writeFileSync(path.join(overrides, 'jobtail'), OVERRIDES);
  setTimes(place);
  const file = path.join(work, `jobtail_${version}_${debArchitecture}.deb`);
  const compression = isQuick ? ['-Zgzip', '-z1'] : ['-Zxz'];
  run('dpkg-deb', ['--root-owner-group', ...compression, '--build', place, file], { environment });
  return file;
}

function makeRpm(place) {
  setTimes(place);
  const top = path.join(work, 'rpmbuild');
  rmSync(top, { recursive: true, force: true });
  const macros = {
    _topdir: top,
    jobtail_version: version,
    jobtail_tree: place,
    _buildhost: 'reproducible',
    use_source_date_epoch_as_buildtime: '1',
    clamp_mtime_to_source_date_epoch: '1',
    _binary_payload: isQuick ? 'w1.gzdio' : 'w6.xzdio',
  };
  const defines = Object.entries(macros).flatMap(([name, value]) => ['--define', `${name} ${value}`]);
  run(
    'rpmbuild',
    ['-bb', '--quiet', '--target', rpmArchitecture, ...defines, path.join(root, 'packaging/jobtail.spec')],
    { environment },
  );
  return path.join(top, 'RPMS', rpmArchitecture, `jobtail-${version}-1.${rpmArchitecture}.rpm`);
}

function sizeOf(directory) {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(path.join(entry.parentPath, entry.name)).size, 0);
}

const setTimes = (place) => run('find', [place, '-exec', 'touch', '-h', '-d', `@${commitTime}`, '{}', '+']);
