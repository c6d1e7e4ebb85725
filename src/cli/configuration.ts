/** The configuration of a command, and the owner of its state: the command runs as that user. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Config } from '../config/config.ts';
import { findConfig, loadConfig } from '../config/load.ts';
import { JobtailError } from '../errors.ts';
import { printable } from '../printable.ts';

export interface ConfigOption {
  readonly config?: string;
  /** The command line that is run again as another user; that of this process if omitted. */
  readonly commandLine?: readonly string[];
}

export function configurationOf({ config }: ConfigOption): Promise<Config> {
  const onIgnored = (message: string) => void process.stderr.write(`agent: ${printable(message)}\n`);
  return loadConfig(findConfig({ explicit: config, env: process.env, cwd: process.cwd(), onIgnored }));
}

/** The configuration for commands beside the agent; from then on they run as the owner of its state. */
export async function configurationAsOwner(options: ConfigOption): Promise<Config> {
  const config = await configurationOf(options);
  await becomeOwnerOf(config.state.directory, options.commandLine ?? process.argv.slice(2));
  return config;
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Returns as the owner of the directory. If that needs a new process, runs the command line in it and exits with it.
 */
async function becomeOwnerOf(directory: string, commandLine: readonly string[]): Promise<void> {
  if (process.geteuid?.() !== 0) return;
  const owner = ownerOf(directory);
  if (owner.uid === 0) return;
  takeGroupsOf(owner);
  // setpriv is part of util-linux. Without it, or without the right to pass on a capability (in a container), all
  // rights of root are given up.
  const becoming = setprivArguments(owner);
  if (spawnSync('setpriv', [...becoming, 'true'], { stdio: 'ignore' }).status === 0)
    await runAgain([...becoming, process.execPath, ...process.execArgv, process.argv[1] ?? '', ...commandLine]);
  process.setgid?.(owner.gid);
  process.setuid?.(owner.uid);
}

/**
 * The owner of a directory, or of the nearest existing one above it. A link of another user on the way means that it is
 * not the intended directory.
 */
function ownerOf(directory: string): Owner {
  const users = new Set<number>();
  const owner = walk(path.resolve(directory), users, 0);
  users.delete(0);
  users.delete(owner.uid);
  const [other] = users;
  if (other === undefined) return owner;
  throw new JobtailError('permission', `${directory} belongs to the user ${owner.uid}, by way of the user ${other}`, {
    hint: `run the command as the user of the agent, or make one user the owner of ${directory} and its parents`,
  });
}

/** The limit of Linux. */
const MAX_LINKS = 40;

/**
 * Walks down to a directory; collects the owners of the links and, unless root owns it, of the directories above it.
 */
function walk(directory: string, users: Set<number>, links: number): Owner {
  const above = new Set<number>();
  let owner: Owner = { uid: 0, gid: 0 };
  const parts = directory.split('/').filter((part) => part !== '');
  for (let at = '/', index = 0; ; index++) {
    const stat = fs.lstatSync(at, { throwIfNoEntry: false });
    if (stat === undefined) break;
    if (stat.isSymbolicLink()) {
      users.add(stat.uid);
      if (links >= MAX_LINKS) throw new JobtailError('local-io', `${directory} leads through too many links`);
      const target = path.resolve(path.dirname(at), fs.readlinkSync(at), ...parts.slice(index));
      owner = walk(target, users, links + 1);
      break;
    }
    above.add(stat.uid);
    owner = { uid: stat.uid, gid: stat.gid === 0 ? stat.uid : stat.gid };
    const next = parts[index];
    if (next === undefined) break;
    at = path.join(at, next);
  }
  if (owner.uid !== 0) for (const uid of above) users.add(uid);
  return owner;
}

function takeGroupsOf({ uid, gid }: Owner): void {
  try {
    // Missing in the types of Node.js.
    (process as { initgroups?(user: number, group: number): void }).initgroups?.(uid, gid);
  } catch {
    // The user has no name.
    process.setgroups?.([gid]);
  }
}

function setprivArguments({ uid, gid }: Owner): string[] {
  const reading = '-all,+dac_read_search';
  return [
    ...['--reuid', String(uid), '--regid', String(gid), '--keep-groups', '--pdeathsig', 'SIGTERM'],
    ...['--inh-caps', reading, '--ambient-caps', reading, '--bounding-set', reading],
    // Otherwise access(2), which SQLite and Node.js use, ignores the capability.
    ...['--securebits', '+no_setuid_fixup'],
  ];
}

async function runAgain(line: readonly string[]): Promise<never> {
  const child = spawn('setpriv', line, { stdio: 'inherit' });
  // A terminal sends Ctrl-C to the child, too.
  process.on('SIGINT', () => {});
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void child.kill(signal));
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  process.exit(code ?? 128 + os.constants.signals[signal ?? 'SIGTERM']);
}
