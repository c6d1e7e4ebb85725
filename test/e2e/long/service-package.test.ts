/** What goes into the package; scripts/check-package.sh, which CI runs, installs it and runs it. */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** npm sometimes stands still for ever while it packs; whatever waits has an end. */
async function packed(): Promise<string> {
  for (let tries = 1; ; tries++) {
    try {
      const args = ['pack', '--dry-run', '--json', '--ignore-scripts', '--silent'];
      return (await promisify(execFile)('npm', args, { cwd: ROOT, timeout: 60_000, killSignal: 'SIGKILL' })).stdout;
    } catch (error) {
      if (tries === 3 || (error as { killed?: boolean }).killed !== true) throw error;
    }
  }
}

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

it('has the licence of each package that is built in', () => {
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

it('asks for native modules only, and for what a fleet alone needs', () => {
  const { dependencies, optionalDependencies } = JSON.parse(fs.readFileSync(`${ROOT}package.json`, 'utf8'));
  expect([...Object.keys(dependencies), ...Object.keys(optionalDependencies)]).toEqual([
    'better-sqlite3',
    'pg-boss',
    'unix-dgram',
  ]);
});

it('holds what is needed to run, and nothing else', { timeout: 240_000 }, async () => {
  const output = await packed();
  const names = [...output.matchAll(/"path": "([^"]+)"/g)].map(([, name = '']) => name);
  const needed = [
    'package.json',
    'npm-shrinkwrap.json',
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
    'config.example.yaml',
    'dist/cli/main.js',
    'dist/THIRD-PARTY-LICENSES',
    'systemd/agent.service',
    'systemd/agent@.service',
    'systemd/agent-fleet.conf',
    'docs/agent.1',
    'docs/service.md',
    'docs/alerts.yaml',
    'docs/grafana-dashboard.json',
  ];
  expect(names).toEqual(expect.arrayContaining(needed));
  const folders = new Set(names.map((name) => (name.includes('/') ? name.slice(0, name.indexOf('/')) : '')));
  expect([...folders].sort()).toEqual(['', 'dist', 'docs', 'systemd']);
  for (const unit of ['systemd/agent.service', 'systemd/agent@.service']) {
    expect(fs.readFileSync(`${ROOT}${unit}`, 'utf8')).toContain('Type=notify');
  }
});
