// The SBOM of the archive (CycloneDX 1.6): Node.js, the packages that are installed and those that are bundled in dist/.
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The text of the SBOM; `modules` are places in the lock file. */
export function billOfMaterials({ root, version, nodeVersion, sqliteVersion, modules, commitTime }) {
  const lock = JSON.parse(readFileSync(path.join(root, 'npm-shrinkwrap.json'), 'utf8')).packages;
  const bundled = ['dist/THIRD-PARTY-LICENSES', 'dist/view/page/THIRD-PARTY-LICENSES'].flatMap((file) =>
    namesIn(path.join(root, file)),
  );
  const installed = modules.map((place) => [place.replace(/^.*node_modules\//, ''), lock[place].version]);
  const packages = new Map([...bundled, ...installed].map((one) => [one.join('@'), one]));
  const components = [...packages.values()]
    .sort()
    .map(([name, packageVersion]) => component({ lock, name, version: packageVersion }));
  const node = outside('application', 'node', nodeVersion, 'MIT');
  const sqlite = outside('library', 'sqlite', sqliteVersion, 'blessing');
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp: new Date(Number(commitTime) * 1000).toISOString(),
      component: {
        type: 'application',
        name: 'jobtail',
        version,
        licenses: [{ license: { id: 'MIT' } }],
        purl: `pkg:npm/jobtail@${version}`,
      },
    },
    components: [node, sqlite, ...components],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** [name, version] of each package whose licence is in `file` (scripts/third-party-licences.mjs writes it). */
function namesIn(file) {
  const heads = readFileSync(file, 'utf8').matchAll(/^={80}\n(\S+) (\S+)\n/gm);
  return [...heads].map(([, name, version]) => [name, version]);
}

/** What is in no registry of npm. */
const outside = (type, name, version, id) => ({
  type,
  name,
  version,
  licenses: [{ license: { id } }],
  purl: `pkg:generic/${name}@${version}`,
});

function component({ lock, name, version }) {
  const entry = Object.entries(lock).find(
    ([place, one]) => place.endsWith(`node_modules/${name}`) && one.version === version,
  )?.[1];
  if (entry?.license === undefined) throw new Error(`the lock file has no licence of ${name} ${version}`);
  const hashes = entry.integrity === undefined ? {} : { hashes: [hashOf(entry.integrity)] };
  return {
    type: 'library',
    name,
    version,
    licenses: [expression(entry.license)],
    ...hashes,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
  };
}

const expression = (license) => (/[ ()]/.test(license) ? { expression: license } : { license: { id: license } });

/** npm's integrity as CycloneDX writes it. */
function hashOf(integrity) {
  const [algorithm, base64] = integrity.split(' ')[0].split(/-(.*)/s);
  return { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(base64, 'base64').toString('hex') };
}
