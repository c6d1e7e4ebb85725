/**
 * A command that root runs on the state of another user becomes that user first. Whatever that user has put in the way,
 * links, pipes or a crafted database, then leads to nothing that the user could not write anyway; and what the command
 * makes belongs to the user, not to root. It goes on reading what root may read: the secrets of the configuration, and
 * directories that only root can enter (systemd keeps the state of a dynamic user in one).
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { JobtailError } from '../errors.ts';

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Returns as the owner of the directory; where that takes a new process, that one runs the command line and this one
 * ends with it.
 */
export async function becomeOwnerOf(directory: string, commandLine: readonly string[]): Promise<void> {
  if (process.geteuid?.() !== 0) return;
  const owner = ownerOf(directory);
  if (owner.uid === 0) return;
  takeGroupsOf(owner);
  // util-linux; missing, or without the right to hand a capability on (a container), all rights of root are given up.
  const becoming = setprivArguments(owner);
  if (spawnSync('setpriv', [...becoming, 'true'], { stdio: 'ignore' }).status === 0)
    await runAgain([...becoming, process.execPath, ...process.execArgv, process.argv[1] ?? '', ...commandLine]);
  process.setgid?.(owner.gid);
  process.setuid?.(owner.uid);
}

/**
 * Who owns a directory, or the nearest one above it that is there. Links on the way count, too: with one of another
 * user than the owner, it is not the directory that was meant.
 */
function ownerOf(directory: string): Owner {
  const users = new Set<number>();
  const owner = walk(path.resolve(directory), users, 0);
  users.delete(0);
  users.delete(owner.uid);
  const [other] = users;
  if (other === undefined) return owner;
  throw new JobtailError('permission', `${directory} belongs to the user ${owner.uid}, by way of the user ${other}`, {
    hint: `say the command as the user of the agent, or have ${directory} and what is above it belong to one user`,
  });
}

/** As many as Linux follows. */
const MOST_LINKS = 40;

/** Goes down to a directory; takes down who made the links and, unless root owns it itself, the directories above it. */
function walk(directory: string, users: Set<number>, links: number): Owner {
  const above = new Set<number>();
  let owner: Owner = { uid: 0, gid: 0 };
  const parts = directory.split('/').filter((part) => part !== '');
  for (let at = '/', index = 0; ; index++) {
    const stat = fs.lstatSync(at, { throwIfNoEntry: false });
    if (stat === undefined) break;
    if (stat.isSymbolicLink()) {
      users.add(stat.uid);
      if (links >= MOST_LINKS) throw new JobtailError('local-io', `${directory} leads through too many links`);
      const target = path.resolve(path.dirname(at), fs.readlinkSync(at), ...parts.slice(index));
      owner = walk(target, users, links + 1);
      break;
    }
    above.add(stat.uid);
    // Nobody gets the group of root with it.
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
    // Node.js has it; its types do not.
    (process as { initgroups?(user: number, group: number): void }).initgroups?.(uid, gid);
  } catch {
    // A user without a name.
    process.setgroups?.([gid]);
  }
}

function setprivArguments({ uid, gid }: Owner): string[] {
  const reading = '-all,+dac_read_search';
  return [
    ...['--reuid', String(uid), '--regid', String(gid), '--keep-groups', '--pdeathsig', 'SIGTERM'],
    ...['--inh-caps', reading, '--ambient-caps', reading, '--bounding-set', reading],
    // Else access(2), which SQLite and Node.js ask, leaves the capability out of account.
    ...['--securebits', '+no_setuid_fixup'],
  ];
}

/** Runs the command line as the other user, and ends as it ends. */
async function runAgain(line: readonly string[]): Promise<never> {
  const child = spawn('setpriv', line, { stdio: 'inherit' });
  // A terminal tells the child of Ctrl-C itself.
  process.on('SIGINT', () => {});
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void child.kill(signal));
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  process.exit(code ?? 128 + os.constants.signals[signal ?? 'SIGTERM']);
}
