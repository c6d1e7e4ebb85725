/** The transfer grants, which survive a change of the configuration, and the loop that releases unused ones. */
import os from 'node:os';
import path from 'node:path';
import type { Log } from '../agent/ports/host.ts';
import type { Remote } from '../agent/ports/server.ts';
import type { DirectTransfer } from '../agent/ports/transfer.ts';
import { DirectResults } from '../agent/results/download/by-direct.ts';
import { Leases } from '../agent/results/download/leases.ts';
import type { Config } from '../config/config.ts';
import { guardedPathsOf } from '../config/secrets.ts';
import { PrivateDirectory } from '../direct/private-directory.ts';
import { type ShareTransferOptions, shareTransfer } from '../direct/share.ts';
import { sshTransfer } from '../direct/ssh-transfer.ts';
import { asJobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { LinkedAbort } from '../linked-abort.ts';
import type { Secrets } from '../redact.ts';
import type { Store } from '../store/store.ts';
import { type Clock, sleep, systemClock } from '../system/clock.ts';
import { isInstalled } from '../system/program.ts';

/** Interval of the loop while there are grants. */
const TICK_MS = 5_000;
/** After a failure; and without a grant, for those that come from another agent of a fleet. */
const PAUSE_MS = 60_000;
/** Limit for releasing the grants of one job. */
const END_MS = 5_000;

interface TransfersOptions {
  readonly store: Store;
  readonly log: Log;
  readonly secrets: Secrets;
  readonly clock?: Clock;
}

/** The shares of a configuration, and the directories that no share may contain. */
export function sharesOf(config: Config, environment: NodeJS.ProcessEnv): ShareTransferOptions {
  const { RUNTIME_DIRECTORY, CREDENTIALS_DIRECTORY, XDG_RUNTIME_DIR } = environment;
  // Shares may be mounted beside the private keys.
  const keys = XDG_RUNTIME_DIR === undefined ? undefined : path.join(XDG_RUNTIME_DIR, 'jobtail-keys');
  const home = homeOfUser();
  const ofUser = home === undefined ? [] : ['.ssh', '.gnupg'].map((name) => path.join(home, name));
  const directories = [RUNTIME_DIRECTORY?.split(':')[0], CREDENTIALS_DIRECTORY, keys, ...ofUser];
  const guarded = directories.filter((directory) => directory !== undefined && path.isAbsolute(directory)) as string[];
  return { roots: config.results.shareRoots, guarded: [...guardedPathsOf(config), ...guarded] };
}

/** Undefined for a user without an entry in passwd, and without HOME. */
function homeOfUser(): string | undefined {
  try {
    return os.homedir();
  } catch {
    return undefined;
  }
}

export const canUseSsh = () => isInstalled('ssh') && isInstalled('rsync');

export class Transfers {
  readonly leases: Leases;
  readonly secrets: Secrets;
  readonly #directory: PrivateDirectory;
  readonly #log: Log;
  readonly #clock: Clock;
  #remote: Remote | undefined;

  /** For the owner of the lock only: removes the leftovers of a kill. */
  constructor({ store, log, secrets, clock = systemClock }: TransfersOptions) {
    this.secrets = secrets;
    this.#log = log;
    this.#clock = clock;
    this.leases = new Leases({ store, clock, log });
    this.#directory = new PrivateDirectory({ stateDirectory: store.directory, environment: process.env });
    this.#directory.clearLeftovers();
  }

  directOf(config: Config): DirectResults | null {
    const { results, state } = config;
    const { transfer, directAboveBytes: aboveBytes, ssh } = results;
    if (transfer === 'service') return null;
    // No key is requested that no program here can use.
    if (transfer === 'auto' && !canUseSsh() && Object.keys(results.shareRoots).length === 0) return null;
    const knownHostsFile = ssh.knownHostsFile ?? path.join(path.resolve(state.directory), 'known_hosts');
    return new DirectResults({
      leases: this.leases,
      clock: this.#clock,
      random: Math.random,
      wanted: transfer,
      aboveBytes,
      transfers: {
        NetworkShare: this.#safe(shareTransfer(sharesOf(config, process.env))),
        SftpScp: this.#safe(sshTransfer({ ...ssh, knownHostsFile, directory: this.#directory })),
      },
    });
  }

  /** Errors of a transfer contain output of programs and hosts: secrets are removed. */
  #safe(transfer: DirectTransfer): DirectTransfer {
    const failed = (error: unknown): never => {
      throw this.secrets.hideIn(asJobtailError(error));
    };
    return {
      fetch: (request) => transfer.fetch(request).catch(failed),
      list: (request) => transfer.list(request).catch(failed),
    };
  }

  /** Releases unused grants periodically; the returned function ends that. */
  keepUp(remote: Remote): () => Promise<void> {
    this.#remote = remote;
    const stop = new AbortController();
    const running = this.#keepEnding(remote, stop.signal);
    return () => {
      stop.abort();
      return running;
    };
  }

  /** Releases the grants of a job, if that is possible at once; its next owner in a fleet releases the rest. */
  async end(jobId: JobId): Promise<void> {
    if (this.#remote === undefined) return;
    const limit = new AbortController();
    const cancel = this.#clock.timer(END_MS, () => limit.abort());
    await this.leases.end(jobId, this.#remote, limit.signal).finally(cancel);
  }

  async #keepEnding(remote: Remote, signal: AbortSignal): Promise<void> {
    let failing = false;
    while (!signal.aborted) {
      const pause = new LinkedAbort(signal);
      let delayMs = PAUSE_MS;
      try {
        this.leases.onOpen = () => pause.abort();
        if (await this.leases.endUnused(remote, signal)) delayMs = TICK_MS;
        failing = false;
      } catch (thrown) {
        if (!failing) this.#warn(thrown, 'cannot revoke a temporary key yet');
        failing = true;
      }
      await sleep(this.#clock, delayMs, pause.signal).catch(() => {});
      pause.release();
    }
  }

  /** Releases all grants: the private keys end with the process. The next start releases what fails now. */
  async endAll(remote: Remote, signal: AbortSignal): Promise<void> {
    try {
      await this.leases.endAll(remote, signal);
    } catch (thrown) {
      this.#warn(thrown, 'temporary key not revoked, retried at the next start');
    }
  }

  #warn(thrown: unknown, what: string): void {
    const { code, message } = asJobtailError(thrown);
    this.#log.warn({ scope: 'transfers', code, err: message }, what);
  }
}
