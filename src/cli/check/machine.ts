/** `agent check`: this machine, the ways of results, and the database of the fleet. Changes nothing. */
import fs from 'node:fs';
import {
  type Config,
  type FleetConfig,
  PLAIN_DATABASE,
  PLAIN_DATABASE_HINT,
  PLAIN_HINT,
  plainConnections,
} from '../../config/config.ts';
import { secretFilesOf } from '../../config/secrets.ts';
import { onlyOfAgent } from '../../daemon/state.ts';
import { canUseSsh, sharesOf } from '../../daemon/transfers.ts';
import { PLAIN_VIEW_HINT, plainView, viewSettingsOf } from '../../daemon/view-thread.ts';
import { coveringRoot, notCovered, openRoot } from '../../direct/share.ts';
import { JobtailError } from '../../errors.ts';
import { Rule } from '../../notify/rules.ts';
import { signingKey } from '../../notify/senders.ts';
import { countOf, showAge, showBytes } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import { Secrets } from '../../redact.ts';
import { isOnNetworkFileSystem } from '../../store/database.ts';
import { runningAgent } from '../../store/lock.ts';
import type { Store } from '../../store/store.ts';
import { versionOfProgram } from '../../system/package-file.ts';
import { isRefusedToUser, storageOf } from '../../system/storage.ts';
import { addressOf, findView, missingDirectory, unprovenText } from '../../view/link.ts';
import { readToken, tokenFileOf } from '../../view/token.ts';
import { isPrivate } from '../agent-socket.ts';
import { commandLog } from '../process.ts';
import { asWarning, type Finding, note, ok, warnIf, warning } from './findings.ts';

const UNPROVEN_HINT = 'open no link to it; set view.listen to a free address, or to the path of a Unix socket';
const LITTLE_BYTES = 1024 ** 3;
const FEW_INODES = 1_000;

export function checkConfigFile(config: Config): Finding[] {
  const { file, watch } = config;
  const isOld = /^[^#\n]*\btransfer["']?: *["']?soap\b/m.test(fs.readFileSync(file, 'utf8'));
  const writeHint = `chmod go-w ${file}: it names programs that the agent runs`;
  return [
    ok(`${file}, jobs in it: ${watch.length || 'none'}`),
    ...warnIf(isOld, 'results.transfer: soap is an old word', 'write transfer: service, which means the same'),
    ...warnIf((modeOfFile(file) & 0o022) !== 0, 'other users than its owner can change it', writeHint),
    ...secretFilesOf(config).flatMap((secret) => {
      const mode = modeOfFile(secret);
      const who = (mode & 0o004) === 0 ? 'the group of it' : 'every user';
      const readHint = `run chmod 600 ${secret}, unless the group needs access`;
      return warnIf((mode & 0o044) !== 0, `${who} can read the secret in ${secret}`, readHint);
    }),
    ...plainConnections(config).map(({ text }) => warning(text, PLAIN_HINT)),
  ];
}

type Directories = Readonly<Record<'mirror' | 'state', { readonly directory: string }>>;

/** Checks a directory of the configuration: exists or can be created, writable, file system, free space. */
export async function checkDirectory(config: Directories, section: keyof Directories): Promise<Finding[]> {
  const { directory } = config[section];
  const key = `${section}.directory`;
  const { at, freeBytes, freeInodes, error } = await storageOf(directory);
  const elsewhere = `, or set ${key} to another directory`;
  // A running agent has already proven that it may.
  const isOfOwner = error !== undefined && isRefusedToUser(error) && runningAgent(config.state.directory) !== undefined;
  if (error !== undefined && !isOfOwner) {
    const { code, message, hint = `move ${at} away` } = error;
    throw new JobtailError(code, `${key} ${directory}: ${message}`, { hint: `${hint}${elsewhere}` });
  }
  const isState = section === 'state';
  const isOpen = isState && at === directory && (fs.statSync(directory).mode & 0o077) !== 0;
  const local = `set ${key} to a local disk: a database is safer there`;
  return [
    ok(`${directory}${at === directory ? '' : ', will be created'}, ${showBytes(freeBytes)} free`),
    ...(isOfOwner ? [note('only its owner, as whom the agent runs, may write it')] : []),
    ...warnIf(freeBytes < LITTLE_BYTES, `low disk space: ${showBytes(freeBytes)} free`, `free some space${elsewhere}`),
    ...warnIf(freeInodes < FEW_INODES, `room for ${freeInodes} more files only (df -i)`, `remove files${elsewhere}`),
    ...warnIf(isOpen, 'other users can enter it, and could lock its files', onlyOfAgent(directory)),
    ...warnIf(isState && isOnNetworkFileSystem(at), 'it is on a network file system', local),
  ];
}

/** 0 of what is no regular file, such as a device, and of a file that this user may not even find. */
function modeOfFile(file: string): number {
  try {
    const stat = fs.statSync(file);
    return stat.isFile() ? stat.mode : 0;
  } catch {
    return 0;
  }
}

/** The rules of notifications: where they send to, and whether it can be signed. */
export async function checkNotify({ notify }: Config, signal: AbortSignal): Promise<Finding[]> {
  const targets = new Set(notify.map((settings) => new Rule(settings).target));
  for (const { secretFile } of notify) {
    if (secretFile !== null) await signingKey(secretFile, signal);
  }
  return [ok(`${countOf(notify.length, 'rule')}: ${[...targets].join(', ')}; agent notify --test sends an event`)];
}

export function checkAgent({ state }: Config): Finding[] {
  const agent = runningAgent(state.directory);
  if (isPrivate(state.directory)) return [note('unknown: the state belongs to another user')];
  if (agent === undefined) return [note('not running (agent run)')];
  return [ok(`running${agent.pid === null ? '' : ` (pid ${agent.pid}${agent.host})`}`)];
}

export async function checkView(config: Config): Promise<Finding[]> {
  const { listen, ...settings } = viewSettingsOf(config, { program: versionOfProgram(), agentPid: null });
  const file = tokenFileOf(settings);
  const token = readToken(file);
  const made = token === undefined ? 'will be created at the start' : 'only its owner may read it';
  const { kind } = await findView(listen, token);
  const answers = { view: ' answers', nothing: ' does not answer now', unproven: '' }[kind];
  const missing = missingDirectory(listen);
  const plain = plainView(config.view);
  return [
    ok(`${addressOf(listen)}${answers}; its token is in ${file}, ${made}`),
    ...(missing === undefined ? [] : [asWarning(missing)]),
    ...warnIf(kind === 'unproven', unprovenText(listen), UNPROVEN_HINT),
    ...(plain === undefined ? [] : [warning(plain, PLAIN_VIEW_HINT)]),
  ];
}

export async function checkResultsWay(config: Config, store: Store | undefined): Promise<Finding[]> {
  const { enabled, transfer, directAboveBytes, shareRoots } = config.results;
  if (!enabled) return [note('not fetched of jobs that are watched from now on (results.enabled: false)')];
  if (transfer === 'service') return [ok('all of them by the service (results.transfer: service)')];
  const hasSsh = canUseSsh();
  const noSsh = 'ssh and rsync are not both installed here';
  if (!hasSsh && transfer === 'auto' && Object.keys(shareRoots).length === 0)
    return [ok(`all of them by the service: ${noSsh} (install them for direct transfers over SSH)`)];
  const size = showBytes(directAboveBytes);
  const which = transfer === 'direct' ? 'all of them' : `files above ${size} and many at a time`;
  return [
    ok(`${which} by direct transfer (SSH or a mounted share) where that works, else by the service`),
    ...(hasSsh ? [] : [note(noSsh)]),
    note('agent status JOB shows the way of its last results'),
    ...(await checkShares(config, store)),
  ];
}

/** The configured shares, and those that the service named and the configuration does not allow. */
async function checkShares(config: Config, store: Store | undefined): Promise<Finding[]> {
  const { roots, guarded } = sharesOf(config, process.env);
  const found: Finding[] = [];
  for (const [there, here] of Object.entries(roots))
    found.push(await openRoot(here, guarded).then(() => ok(`${there} is ${here}`), asWarning));
  const last = store?.jobs.all().map(({ jobId }) => store.leases.lastOf(jobId)) ?? [];
  const shares = last.flatMap((lease) => (lease?.protocol === 'NetworkShare' ? [lease.basePath ?? ''] : []));
  for (const basePath of new Set(shares))
    if (basePath !== '' && coveringRoot(basePath, roots) === undefined)
      found.push(asWarning(notCovered(printable(basePath))));
  return found;
}

/** Leases do not depend on the clock, but the times in `status` do. */
const FAR_MS = 5_000;

/** @throws JobtailError fleet, config, local-io */
export async function checkFleet(config: FleetConfig): Promise<Finding[]> {
  const [{ fleetAddress }, { readFleet }] = await Promise.all([
    import('../../daemon/fleet.ts'),
    import('../../fleet/commands/client.ts'),
  ]);
  const { isNewEnough, hasTables, mayCreate, version, where, agents, isEncrypted, isHere, aheadMs } = await readFleet(
    await fleetAddress(config.fleet, commandLog(), new Secrets()),
  );
  const refused = (message: string, hint: string) => new JobtailError('fleet', message, { hint });
  if (!isNewEnough) throw refused(`PostgreSQL ${version} is too old`, 'install PostgreSQL 13 or newer');
  if (!hasTables && !mayCreate) {
    const hint = 'make the user of the agents the owner of the database (docs/fleet.md)';
    throw refused(`cannot create the schema ${config.fleet.schema}: permission denied`, hint);
  }
  const far = `its clock is ${showAge(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} this one`;
  const local = 'the mirrors are on a local disk: the next owner of a job transfers everything again (docs/fleet.md)';
  const { directory } = config.mirror;
  return [
    ok(`PostgreSQL ${printable(version)} at ${where}, ${countOf(agents, 'agent')} registered`),
    ...(hasTables ? [] : [note('no tables yet: the first agent creates them')]),
    ...warnIf(!isEncrypted && !isHere, PLAIN_DATABASE, PLAIN_DATABASE_HINT),
    ...warnIf(Math.abs(aheadMs) > FAR_MS, far, 'synchronize both clocks by NTP'),
    ...(fs.existsSync(directory) && !isOnNetworkFileSystem(directory) ? [note(local)] : []),
  ];
}
