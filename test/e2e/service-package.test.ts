/** What goes into the package; scripts/check-package.sh, which CI runs, installs it and runs it. */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

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
    'systemd/agent.service',
    'systemd/agent@.service',
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
