/** The scripts of the .deb, with their paths below a temporary directory. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../support/temp-directory.ts';

const SCRIPT = fileURLToPath(new URL('../../packaging/deb/postrm', import.meta.url));

it('a purge removes what jobtail made, and no mirror, result, or file of another program', () => {
  const root = temporaryDirectory();
  const stays = [
    'etc/agent/puppet-agent.conf',
    'etc/agent/second/token',
    'var/lib/agent/mirror/501/live/9001/stdout.log',
    'var/lib/agent-smith/state/agent.db',
    'var/lib/agent-second/state/results.txt',
  ];
  const goes = [
    ...['config.yaml', 'password', 'second/config.yaml'].map((name) => `etc/agent/${name}`),
    ...[
      'agent.db',
      'agent.db-wal',
      'agent.db.before-v9.now',
      'agent.lock',
      'agent.waiting',
      'known_hosts',
      'view-token',
    ].map((name) => `var/lib/agent/state/${name}`),
    'var/lib/agent-second/state/agent.db',
  ];
  for (const file of [...stays, ...goes]) {
    fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    fs.writeFileSync(path.join(root, file), 'x');
  }
  fs.mkdirSync(path.join(root, 'var/lib/agent/state/spill'));
  const script = fs
    .readFileSync(SCRIPT, 'utf8')
    .replaceAll(/\/(?=etc\/agent|var\/lib\/agent)/g, `${root}/`)
    .replaceAll('systemctl', 'true');
  execFileSync('sh', ['-c', script, 'postrm', 'purge']);
  const left = fs.readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const names = left.map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)));
  expect(names.sort()).toEqual(stays.sort());
  expect(fs.existsSync(path.join(root, 'var/lib/agent/state'))).toBe(false);
});
