// What the makers of packages share: where things are, what runs with which time, and how a command is run.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSignOfLife } from '../scripts/sign-of-life.mjs';

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
export const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
export const kind = `${process.platform}-${process.arch}`;
export const output = path.join(root, 'packages');
export const work = path.join(output, 'work');

/** Runs `command`, whose errors are shown; throws if it fails. */
export function run(command, args, { cwd = root, environment = {} } = {}) {
  const what = ['package:', path.basename(command), ...args.slice(0, 1)].join(' ');
  const done = withSignOfLife(what, () =>
    spawnSync(command, args, {
      cwd,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  );
  if (done.error !== undefined) throw done.error;
  if (done.status !== 0) throw new Error(`${command} ${args.join(' ')} failed with status ${done.status}`);
}

/** The standard output of `command`; throws if it fails. */
export function read(command, args) {
  const done = spawnSync(command, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (done.error !== undefined) throw done.error;
  if (done.status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${done.stderr}`);
  return done.stdout;
}

export const digest = (file) => createHash('sha256').update(readFileSync(file)).digest('hex');

/** The time of all packed files, in seconds: that of the commit, so that a commit gives the same bytes each time. */
export const commitTime = process.env.SOURCE_DATE_EPOCH ?? read('git', ['log', '-1', '--format=%ct']).trim();

export const exists = (command) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
