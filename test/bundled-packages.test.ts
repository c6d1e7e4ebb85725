/** What the bundle has instead of a package has all that the program takes from it. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

const root = path.join(import.meta.dirname, '..');

it('the smaller undici of the bundle exports what the sources import', () => {
  const shrunk = fs.readFileSync(path.join(root, 'scripts', 'smaller-packages.mjs'), 'utf8');
  const exported = [...shrunk.matchAll(/exports\.(\w+) = require/g)].map(([, name]) => name);
  const sources = fs.readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' });
  const imported = sources
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => [
      ...fs.readFileSync(path.join(root, 'src', name), 'utf8').matchAll(/^import \{([^}]*)\} from 'undici'/gm),
    ])
    .flatMap(([, names = '']) => names.split(',').map((name) => name.trim()))
    .filter((name) => name !== '' && !name.startsWith('type '));
  expect(imported).toContain('Agent');
  expect(imported.filter((name) => !exported.includes(name))).toEqual([]);
});
