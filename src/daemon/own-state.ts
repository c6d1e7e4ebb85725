/** The directories of a configuration and the state in them, for the owner of the state. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../agent/ports/host.ts';
import type { Config } from '../config/config.ts';
import { asJobtailError, JobtailError } from '../errors.ts';
import { Secrets } from '../redact.ts';
import { isServed, lockDirectory, lockHolder, type Role, waitAsAgent } from '../store/lock.ts';
import { Store } from '../store/store.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { isWritableByOthers, stepsTo, userName } from '../system/owners.ts';
import { onlyOfAgent, openSharedStore, storeOf } from './state.ts';
import { Transfers } from './transfers.ts';

export const spillDirectory = (config: Config) => path.join(config.state.directory, 'spill');

/** Users who can read the files of the state can lock them, which stops the agent. */
const PRIVATE_MODE = 0o700;

/** Older versions created the directory with mode 0750. One of other files, as /var, stays as it is. */
function narrow(directory: string): void {
  const { mode, uid } = fs.statSync(directory);
  if ((mode & 0o077) === 0 || uid !== process.geteuid?.()) return;
  const names = fs.readdirSync(directory);
  if (names.length > 0 && !names.some((name) => name.startsWith('agent.db')))
    throw new JobtailError('permission', `state.directory ${directory} has other files, and other users may enter it`, {
      hint: 'set state.directory to a directory of its own; it is created if it is missing',
    });
  fs.chmodSync(directory, PRIVATE_MODE);
}

export function makeDirectories(config: Config): void {
  const make = (directory: string, key: string, mode: number) => {
    try {
      // Of a read-only file system, a recursive mkdir reports something else.
      fs.accessSync(stepsTo(directory).at(-1)?.at ?? directory, fs.constants.W_OK);
      fs.mkdirSync(directory, { recursive: true, mode });
      fs.accessSync(directory, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK);
    } catch (thrown) {
      const { code, message, hint } = asJobtailError(thrown);
      const kind = code === 'disk-full' ? code : 'permission';
      throw new JobtailError(kind, `${key} ${directory} cannot be used: ${message}`, {
        hint: `${hint}; or set ${key} to another directory`,
      });
    }
  };
  make(config.mirror.directory, 'mirror.directory', 0o750);
  make(config.state.directory, 'state.directory', PRIVATE_MODE);
  narrow(config.state.directory);
  make(spillDirectory(config), 'state.directory', PRIVATE_MODE);
}

export interface OwnedStore {
  readonly store: Store;
  readonly transfers: Transfers;
  close(): void;
}

interface OwnStoreOptions {
  readonly secrets?: Secrets;
  readonly clock?: Clock;
  readonly role?: Role;
}

/** Takes the lock of the state directory and opens the store. @throws JobtailError locked if another process has it */
export function openOwnStore(config: Config, log: Log, options: OwnStoreOptions = {}): OwnedStore {
  const { secrets = new Secrets(), clock = systemClock, role = 'agent' } = options;
  refuseForeignState(config);
  makeDirectories(config);
  const lock = lockDirectory(config.state.directory, role);
  let store: Store | undefined;
  try {
    store = new Store({ ...storeOf(config), owner: true, now: clock.now });
    if (store.quarantined !== undefined) {
      const hint = 'offsets are recovered from the mirrors; run agent watch again for its jobs';
      const fields = { scope: 'the state', path: store.quarantined, hint };
      log.error(fields, 'state broken, set aside');
    }
    warnOfAnotherService(store, log);
    const opened = store;
    const transfers = new Transfers({ store, log, secrets, clock });
    const close = () => {
      opened.close();
      lock.release();
    };
    return { store, transfers, close };
  } catch (error) {
    store?.close();
    lock.release();
    throw error;
  }
}

/** Another middleware has other jobs with the same numbers. The same one may have another address, too. */
function warnOfAnotherService({ jobs, capabilities }: Store, log: Log): void {
  const { service: address, others } = capabilities;
  if (others.length === 0 || capabilities.all().length > 0 || jobs.all().length === 0) return;
  const hint =
    'if it is another middleware, set mirror.directory and state.directory to other directories: jobs with the same numbers are taken for one another';
  log.warn({ address, before: others.join(', '), hint }, 'address of the service changed');
}

/** The same for an agent: it waits until a command releases the state. Undefined if it is stopped before. */
export async function openAsAgent(
  config: Config,
  log: Log,
  { secrets, stop }: { readonly secrets: Secrets; readonly stop: AbortSignal },
): Promise<OwnedStore | undefined> {
  const { directory } = config.state;
  refuseForeignState(config);
  makeDirectories(config);
  const waiting = waitAsAgent(directory);
  try {
    for (let tries = 0, agents = 0; !stop.aborted; tries += 1) {
      try {
        return openOwnStore(config, log, { secrets });
      } catch (thrown) {
        if (asJobtailError(thrown).code !== 'locked') throw thrown;
        const holder = lockHolder(directory);
        // A process that has just taken the lock has not written yet what it is.
        if (holder?.role === 'agent' && ++agents > 1) throw thrown;
        if (tries === 0 && holder?.role === 'command')
          log.info({ pid: holder.pid }, 'waiting for a command to release the state');
        await sleep(TRY_MS, undefined, { signal: stop }).catch(() => {});
      }
    }
    return undefined;
  } finally {
    waiting.release();
  }
}

const TRY_MS = 100;
const MAX_TRIES = 50;

/** Opens the store as its owner for a moment, or beside the process that serves it, which may be creating it. */
export async function withStore<T>(
  config: Config,
  log: Log,
  work: (store: Store, owned: OwnedStore | undefined) => T | Promise<T>,
): Promise<T> {
  const { directory } = config.state;
  for (let tries = 0; ; tries += 1) {
    let owned: OwnedStore | undefined;
    let store: Store;
    try {
      if (!isServed(directory)) owned = openOwnStore(config, log, { role: 'command' });
      store = owned?.store ?? openSharedStore(config);
    } catch (thrown) {
      const { code } = asJobtailError(thrown);
      const isOfOther = code === 'locked' || (code === 'store' && isServed(directory));
      if (!isOfOther || tries === MAX_TRIES) throw thrown;
      await sleep(TRY_MS);
      continue;
    }
    try {
      return await work(store, owned);
    } finally {
      (owned ?? store).close();
    }
  }
}

/** Another user could replace files of the state. Those that root creates in it would stop the agent of its owner. */
function refuseForeignState({ state: { directory } }: Config): void {
  const user = process.geteuid?.();
  if (!fs.existsSync(directory)) return;
  const stat = fs.statSync(directory);
  const refused = (reason: string, hint: string) =>
    new JobtailError('permission', `the state in ${directory} ${reason}`, { hint });
  if (stat.uid !== user) {
    const reason = `belongs to the user ${userName(stat.uid)}, not to ${user === 0 ? 'root' : `the user ${userName(user)}`}`;
    throw refused(reason, 'run it as that user, or set state.directory to another directory');
  }
  if (isWritableByOthers(stat))
    throw refused('can be written by other users', `check what is in it; ${onlyOfAgent(directory)}`);
}
