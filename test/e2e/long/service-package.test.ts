/** What the built program has of its packages, and what of them it must not have. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The packages of which the built program has code: the bundler says before each module where it is from. */
function bundledPackages(): string[] {
  const chunks = fs
    .readdirSync(`${ROOT}dist`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.js'));
  const directories = chunks.flatMap((name) => {
    const text = fs.readFileSync(`${ROOT}dist/${name}`, 'utf8');
    const modules = text.matchAll(/^[ \t]*\/\/ (node_modules\/(?:.*\/node_modules\/)?(?:@[^/\s]+\/)?[^/\s]+)\/\S+$/gm);
    return [...modules].map(([, directory = '']) => directory);
  });
  return [...new Set(directories)].sort();
}

it('the built program has the licence of each package that is built in', () => {
  const entries = fs
    .readFileSync(`${ROOT}dist/THIRD-PARTY-LICENSES`, 'utf8')
    .split(/^={80}\n/m)
    .slice(1);
  const texts = new Map(entries.map((entry) => [entry.slice(0, entry.indexOf('\n')), entry]));
  const bundled = bundledPackages().map((directory) => {
    const { name, version } = JSON.parse(fs.readFileSync(`${ROOT}${directory}/package.json`, 'utf8'));
    return `${name} ${version}`;
  });
  expect(bundled).toEqual(expect.arrayContaining([expect.stringMatching(/^undici /), expect.stringMatching(/^soap /)]));
  for (const name of bundled) expect(texts.get(name), name).toMatch(/copyright|blue oak/i);
});

it('what would fetch a contract, and what is no client, is not in it', () => {
  const directory = `${ROOT}dist/chunks/`;
  const chunks = fs.readdirSync(directory).filter((name) => name.endsWith('.js'));
  const texts = chunks.map((name) => fs.readFileSync(directory + name, 'utf8'));
  for (const module of [/node_modules\/axios/, /node_modules\/undici\/lib\/mock\//])
    expect(texts.filter((text) => module.test(text))).toEqual([]);
});
