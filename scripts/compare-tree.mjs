// Holds what was installed against npm-shrinkwrap.json: `node scripts/compare-tree.mjs DIRECTORY`, the directory of the
// installed package. Every package that the program needs must be there in the locked version, and no other one.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const [installed] = process.argv.slice(2);
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const { packages } = read(new URL('../npm-shrinkwrap.json', import.meta.url));

/** The places of packages below a directory, as the lock names them. */
function placesIn(directory, prefix = '') {
  const modules = path.join(directory, 'node_modules');
  if (!existsSync(modules)) return [];
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(path.join(modules, name)).map((inner) => `${name}/${inner}`) : [name],
  );
  return names
    .filter((name) => !name.startsWith('.'))
    .flatMap((name) => {
      const place = `${prefix}node_modules/${name}`;
      return [place, ...placesIn(path.join(modules, name), `${place}/`)];
    });
}

const found = new Map(
  placesIn(installed).map((place) => [place, read(path.join(installed, place, 'package.json')).version]),
);
const wanted = Object.entries(packages).filter(([place, { dev, devOptional }]) => place !== '' && !dev && !devOptional);
const wrong = wanted.flatMap(([place, { version, optional }]) => {
  const there = found.get(place);
  found.delete(place);
  return there === version || (there === undefined && optional) ? [] : [`${place}: ${there}, locked is ${version}`];
});
wrong.push(...[...found].map(([place, version]) => `${place}: ${version}, which is not locked`));
if (wrong.length > 0) throw new Error(`the installed packages are not those of the lock:\n${wrong.join('\n')}`);
process.stdout.write(`${wanted.length} packages in their locked versions\n`);
