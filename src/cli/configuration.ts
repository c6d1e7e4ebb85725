/**
 * The configuration of a command, and the user it runs as. A command of root becomes the owner of the configuration or
 * of the state, in the same process and for good: no capability and no saved user id of root is left.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Config } from '../config/config.ts';
import { findConfig, loadConfig } from '../config/load.ts';
import { filesOf } from '../config/secrets.ts';
import { asJobtailError, JobtailError } from '../errors.ts';
import { keepFile } from '../system/kept-files.ts';
import { type Step, stepsTo, userName } from '../system/owners.ts';
import { requireOwner } from './agent-socket.ts';

export interface ConfigOption {
  readonly config?: string;
}

export interface JsonOption extends ConfigOption {
  readonly json?: boolean;
}

/** For the agent itself, which becomes no other user. */
export function configurationOf(options: ConfigOption): Promise<Config> {
  return loadConfig(configFileOf(options));
}

export function configFileOf({ config }: ConfigOption): string {
  return findConfig({ explicit: config, env: process.env, cwd: process.cwd() });
}

/** The configuration for commands beside the agent; from then on they run as its owner, or as the owner of its state. */
export async function configurationAsOwner(options: ConfigOption): Promise<Config> {
  const file = configFileOf(options);
  if (isRoot()) become(userOfConfig(file));
  const config = await loadConfig(file);
  if (isRoot()) {
    // The unit has them from here (docs/service.md); they were given to systemd, not to this command.
    process.env['CREDENTIALS_DIRECTORY'] ??= path.dirname(file);
    const { directory } = config.state;
    const owner = ownerOf(directory);
    if (owner.uid === 0) return config;
    for (const one of filesOf(config, process.env)) keepFile(one);
    become(owner);
    requireEntry(directory, owner);
  }
  return config;
}

/** The same for a command that uses the state or the secret itself. @throws JobtailError if they are another user's */
export async function ownConfiguration(options: ConfigOption): Promise<Config> {
  const config = await configurationAsOwner(options);
  requireOwner(config);
  return config;
}

const isRoot = () => process.geteuid?.() === 0;

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

const ownerAt = ({ stat: { uid, gid } }: Step): Owner => ({ uid, gid: gid === 0 ? uid : gid });

/** Root, or the one user who can write the file, or put another one in its place. @throws JobtailError permission */
function userOfConfig(file: string): Owner {
  const users = new Map(stepsTo(file).map((step) => [step.stat.uid, ownerAt(step)]));
  users.delete(0);
  const [user, other] = users.values();
  if (other === undefined) return user ?? { uid: 0, gid: 0 };
  throw new JobtailError(
    'permission',
    `${file} can be changed by the users ${Array.from(users.keys(), userName).join(' and ')}`,
    {
      hint: 'run the command as one of them, or make one user the owner of the file and its directories',
    },
  );
}

/** Of a directory, or the nearest one above it. A link of another user means that it is not the intended one. */
function ownerOf(directory: string): Owner {
  const steps = stepsTo(directory);
  const owner = ownerAt(steps.findLast(({ stat }) => !stat.isSymbolicLink()) as Step);
  const others = steps.filter(({ stat }) => stat.uid !== 0 && stat.uid !== owner.uid);
  const other = others.find(({ stat }) => owner.uid !== 0 || stat.isSymbolicLink());
  if (other === undefined) return owner;
  const way = `${directory} belongs to the user ${userName(owner.uid)}, by way of the user ${userName(other.stat.uid)}`;
  throw new JobtailError('permission', way, {
    hint: `run the command as the user of the agent, or make one user the owner of ${directory} and its parents`,
  });
}

function become({ uid, gid }: Owner): void {
  if (uid === 0) return;
  try {
    takeGroupsOf(uid, gid);
    process.setgid?.(gid);
    process.setuid?.(uid);
    Object.assign(process.env, homeOf(uid));
  } catch (thrown) {
    throw new JobtailError('permission', `cannot become the user ${userName(uid)}: ${asJobtailError(thrown).message}`, {
      hint: 'run the command as that user',
    });
  }
}

/** For programs that it runs from now on: root's home and name would lead them to files of root. */
function homeOf(uid: number): Record<string, string> {
  try {
    const { homedir, username } = os.userInfo();
    return { HOME: homedir, USER: username, LOGNAME: username };
  } catch {
    return { HOME: '/', USER: String(uid), LOGNAME: String(uid) };
  }
}

function takeGroupsOf(uid: number, gid: number): void {
  try {
    // Missing in the types of Node.js.
    (process as { initgroups?(user: number, group: number): void }).initgroups?.(uid, gid);
  } catch {
    // The user has no name.
    process.setgroups?.([gid]);
  }
}

/** Units of earlier versions had a dynamic user, whose state is below a directory of root's alone. */
function requireEntry(directory: string, { uid }: Owner): void {
  try {
    fs.statSync(directory, { throwIfNoEntry: false });
  } catch {
    throw new JobtailError('permission', `the user ${userName(uid)}, who owns ${directory}, cannot reach it`, {
      hint: 'with the unit of an earlier version, install the one of this version (docs/service.md)',
    });
  }
}
