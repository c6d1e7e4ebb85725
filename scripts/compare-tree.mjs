// Holds what was installed against npm-shrinkwrap.json: `node scripts/compare-tree.mjs DIRECTORY`, the directory of the
// installed package. What package.json asks for must be there in the locked version, and nothing that the lock does not
// name; of the packages that these bring along, npm chooses the versions.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const [installed] = process.argv.slice(2);
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const { packages } = read(new URL('../npm-shrinkwrap.json', import.meta.url));
const { dependencies, optionalDependencies } = packages[''];
/** The names of those that are not for development only, wherever the lock puts them. */
const locked = new Set(
  Object.keys(packages)
    .filter((place) => !packages[place].dev)
    .map((place) => place.split('node_modules/').at(-1)),
);

/** The packages in a directory, by name. */
function packagesIn(directory) {
  const modules = path.join(directory, 'node_modules');
  if (!existsSync(modules)) return [];
  return readdirSync(modules)
    .filter((name) => !name.startsWith('.'))
    .flatMap((name) =>
      name.startsWith('@') ? readdirSync(path.join(modules, name)).map((inner) => `${name}/${inner}`) : [name],
    );
}

const versionOf = (name) => read(path.join(installed, 'node_modules', name, 'package.json')).version;
const found = packagesIn(installed);
const wrong = [
  ...Object.keys(dependencies).filter((name) => !found.includes(name)),
  ...found.filter((name) => {
    const isAsked = name in dependencies || name in optionalDependencies;
    return !locked.has(name) || (isAsked && versionOf(name) !== packages[`node_modules/${name}`].version);
  }),
];
if (wrong.length > 0) throw new Error(`the installed packages are not those of the lock: ${wrong.join(', ')}`);
process.stdout.write(`${found.length} packages, all of them locked\n`);
