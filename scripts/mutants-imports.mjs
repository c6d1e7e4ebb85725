// Which test files import a source, directly or by other files: read from the texts, without running anything.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Also by a name that is imported later: the page has types of its own, which a test does not have. */
const IMPORT = /'(\.[^']+\.tsx?)'/g;

/** @returns for each of the sources the test files with the number of steps, the nearest first, then the shortest */
export function testsThatImport(root, sources) {
  const texts = new Map();
  for (const folder of ['src', 'test', 'simulator'])
    for (const name of readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' }))
      if (/\.tsx?$/.test(name)) texts.set(`${folder}/${name}`, readFileSync(path.join(root, folder, name), 'utf8'));
  const importers = new Map();
  for (const [file, text] of texts) {
    const imported = [...text.matchAll(IMPORT)].map(([, target]) => path.join(path.dirname(file), target));
    // What runs as a worker or as a process is named by its built file.
    const built = [...text.matchAll(/['/]dist\/([\w/-]+)\.js'/g)].map(([, name]) => `src/${name}.ts`);
    for (const target of [...imported, ...built]) importers.set(target, [...(importers.get(target) ?? []), file]);
  }
  return new Map([...sources].map((source) => [source, nearestTests(source, importers, texts)]));
}

function nearestTests(source, importers, texts) {
  const distances = new Map([[source, 0]]);
  for (const [file, distance] of distances)
    for (const importer of importers.get(file) ?? [])
      if (!distances.has(importer)) distances.set(importer, distance + 1);
  const key = ([file, distance]) => [distance, texts.get(file).length];
  return [...distances]
    .filter(([file]) => file.endsWith('.test.ts'))
    .sort((a, b) => key(a)[0] - key(b)[0] || key(a)[1] - key(b)[1]);
}
