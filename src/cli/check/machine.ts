/** `agent check`: this machine. Changes nothing. */
import fs from 'node:fs';
import path from 'node:path';
import { type Config, PLAIN_HINT, plainHooks, plainHookText, plainOrigins, plainText } from '../../config/config.ts';
import { secretFilesOf } from '../../config/secrets.ts';
import { PLAIN_VIEW_HINT, plainView } from '../../daemon/view-thread.ts';
import { JobtailError } from '../../errors.ts';
import { Rule } from '../../notify/rules.ts';
import { countOf, showBytes } from '../../numbers.ts';
import { isOnNetworkFileSystem } from '../../store/database.ts';
import { runningAgent } from '../../store/lock.ts';
import { Secret } from '../../system/secret.ts';
import { addressOf, findView, unprovenText } from '../../view/link.ts';
import type { ViewSettings } from '../../view/settings.ts';
import { readToken, tokenFileOf } from '../../view/token.ts';
import { type Finding, note, ok, warning } from './findings.ts';

const UNPROVEN_HINT = 'open no link to it; set view.listen to a free address, or to the path of a Unix socket';
const LITTLE_BYTES = 1024 ** 3;
const FEW_INODES = 1_000;

export function checkConfigFile(config: Config): Finding[] {
  const { file, watch } = config;
  const { mode } = fs.statSync(file);
  const found = [ok(`${file}, ${watch.length === 0 ? 'no jobs in it' : `${watch.length} jobs in it`}`)];
  if ((mode & 0o022) !== 0) {
    found.push(
      warning('other users than its owner can change it', `chmod go-w ${file}: it names programs that the agent runs`),
    );
  }
  for (const secret of secretFilesOf(config)) {
    const readable = modeOf(secret);
    if ((readable & 0o044) === 0) continue;
    const who = (readable & 0o004) === 0 ? 'the group of it' : 'every user';
    found.push(
      warning(`${who} can read the secret in ${secret}`, `run chmod 600 ${secret}, unless the group needs access`),
    );
  }
  for (const origin of plainOrigins(config)) found.push(warning(plainText(origin), PLAIN_HINT));
  return found;
}

/** Checks a directory of the configuration: exists or can be created, writable, file system, free space. */
export function checkDirectory(directory: string, key: string, agentRuns: boolean): Finding[] {
  const nearest = nearestExisting(directory);
  const stat = fs.statSync(nearest);
  const { uid } = stat;
  if (!stat.isDirectory()) {
    throw new JobtailError('local-io', `${key} ${directory}: ${nearest} is no directory`, {
      hint: `move ${nearest} away, or set ${key} to another directory`,
    });
  }
  const { bavail, bsize, files, ffree } = fs.statfsSync(nearest);
  const free = bavail * bsize;
  const missing = nearest === directory ? '' : ', will be created';
  const found = [ok(`${directory}${missing}, ${showBytes(free)} free`)];
  if (!isWritable(nearest)) {
    // A running agent has already proven that.
    if (!agentRuns) {
      throw new JobtailError('permission', `${key} ${directory}: permission denied: ${nearest}`, {
        hint: `run the agent as the user ${uid}, who owns it, or set ${key} to another directory`,
      });
    }
    found.push(note(`only its owner (user ${uid}), as whom the agent runs, may write it`));
  }
  if (free < LITTLE_BYTES) {
    found.push(
      warning(`low disk space: ${showBytes(free)} free`, `free some space, or set ${key} to another directory`),
    );
  }
  if (files > 0 && ffree < FEW_INODES)
    found.push(
      warning(`room for ${ffree} more files only (df -i)`, `remove files, or set ${key} to another directory`),
    );
  if (key === 'state.directory' && nearest === directory && (modeOf(directory) & 0o077) !== 0) {
    found.push(warning('other users can enter it, and could lock its files', `run chmod 700 ${directory}`));
  }
  if (key === 'state.directory' && isOnNetworkFileSystem(nearest)) {
    found.push(warning('it is on a network file system', `set ${key} to a local disk: a database is safer there`));
  }
  return found;
}

/** Of a file that this user may not even find: 0. */
function modeOf(file: string): number {
  try {
    return fs.statSync(file).mode;
  } catch {
    return 0;
  }
}

/** The rules of notifications: where they send to, and whether it can be encrypted and signed. */
export async function checkNotify({ notify }: Config, signal: AbortSignal): Promise<Finding[]> {
  const targets = new Set(notify.map((settings) => new Rule(settings).target));
  for (const { secretFile } of notify) {
    if (secretFile === null) continue;
    const source = { kind: 'file', path: secretFile } as const;
    await new Secret({ source, name: 'secret of a notification', env: {} }).read(signal);
  }
  const plain = plainHooks({ notify }).map((origin) => warning(plainHookText(origin), PLAIN_HINT));
  return [
    ok(`${countOf(notify.length, 'rule')}: ${[...targets].join(', ')}; agent notify --test sends an event`),
    ...plain,
  ];
}

export function checkAgent({ state }: Config): Finding[] {
  const agent = runningAgent(state.directory);
  if (agent === undefined) return [note('not running (agent run)')];
  return [ok(`running${agent.pid === null ? '' : ` (pid ${agent.pid}${agent.host})`}`)];
}

export async function checkView({ view }: Config, settings: ViewSettings): Promise<Finding[]> {
  const plain = plainView(view);
  const file = tokenFileOf(settings);
  const token = readToken(file);
  const made = token === undefined ? 'will be created at the start' : 'only its owner may read it';
  const { listen } = settings;
  const found = await findView(listen, token);
  const answers = { view: ' answers', nothing: ', not listening now', unproven: '' }[found.kind];
  const other = found.kind === 'unproven' ? [warning(unprovenText(listen), UNPROVEN_HINT)] : [];
  return [
    ok(`${addressOf(listen)}${answers}; its token is in ${file}, ${made}`),
    ...other,
    ...(plain === undefined ? [] : [warning(plain, PLAIN_VIEW_HINT)]),
  ];
}

function nearestExisting(directory: string): string {
  let at = directory;
  while (!fs.existsSync(at) && at !== path.dirname(at)) at = path.dirname(at);
  return at;
}

function isWritable(directory: string): boolean {
  try {
    fs.accessSync(directory, fs.constants.W_OK | fs.constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
