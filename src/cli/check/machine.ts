/** `agent check`: this machine. Changes nothing. */
import fs from 'node:fs';
import { type Config, PLAIN_HINT, plainHooks, plainHookText, plainOrigins, plainText } from '../../config/config.ts';
import { secretFilesOf } from '../../config/secrets.ts';
import { PLAIN_VIEW_HINT, plainView } from '../../daemon/view-thread.ts';
import { JobtailError } from '../../errors.ts';
import { Rule } from '../../notify/rules.ts';
import { countOf, showBytes } from '../../numbers.ts';
import { isOnNetworkFileSystem } from '../../store/database.ts';
import { runningAgent } from '../../store/lock.ts';
import { Secret } from '../../system/secret.ts';
import { isRefusedToUser, storageOf } from '../../system/storage.ts';
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
export async function checkDirectory(directory: string, key: string, agentRuns: boolean): Promise<Finding[]> {
  const { at, freeBytes, freeInodes, error } = await storageOf(directory);
  const elsewhere = `, or set ${key} to another directory`;
  const missing = at === directory ? '' : ', will be created';
  const found = [ok(`${directory}${missing}, ${showBytes(freeBytes)} free`)];
  if (error !== undefined) {
    const { code, message, hint = `move ${at} away` } = error;
    // A running agent has already proven that it may.
    if (!agentRuns || !isRefusedToUser(error))
      throw new JobtailError(code, `${key} ${directory}: ${message}`, { hint: `${hint}${elsewhere}` });
    found.push(note('only its owner, as whom the agent runs, may write it'));
  }
  if (freeBytes < LITTLE_BYTES) {
    found.push(warning(`low disk space: ${showBytes(freeBytes)} free`, `free some space${elsewhere}`));
  }
  if (freeInodes < FEW_INODES) {
    found.push(warning(`room for ${freeInodes} more files only (df -i)`, `remove files${elsewhere}`));
  }
  if (key === 'state.directory' && at === directory && (modeOf(directory) & 0o077) !== 0) {
    found.push(warning('other users can enter it, and could lock its files', `run chmod 700 ${directory}`));
  }
  if (key === 'state.directory' && isOnNetworkFileSystem(at)) {
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
  const answers = { view: ' answers', nothing: ' does not answer now', unproven: '' }[found.kind];
  const other = found.kind === 'unproven' ? [warning(unprovenText(listen), UNPROVEN_HINT)] : [];
  return [
    ok(`${addressOf(listen)}${answers}; its token is in ${file}, ${made}`),
    ...other,
    ...(plain === undefined ? [] : [warning(plain, PLAIN_VIEW_HINT)]),
  ];
}
