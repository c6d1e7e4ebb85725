/**
 * Transfer grants. GetFileTransferMethod makes a temporary key pair on the server, a few for each job, valid for about
 * a day (docs/dev/servers.md 5.1). A job has one grant at a time; its private key is only in memory, and EndFileTransfer
 * releases it. The store records it before it is used, so that a later process can release it. States: asked -> open ->
 * ended. The interface leaves one gap: if the agent is killed after the server made the key and before the public key
 * is stored, no process can name the key, and it expires after a day.
 */
import { BackOffs, eachAlone, type Failed } from '../../../each-alone.ts';
import { asJobtailError, stopped } from '../../../errors.ts';
import { InTurn } from '../../../in-turn.ts';
import type { JobId } from '../../../job.ts';
import type { LeaseRow } from '../../../store/rows.ts';
import type { Store } from '../../../store/store.ts';
import type { Clock } from '../../../system/clock.ts';
import type { Log } from '../../ports/host.ts';
import type { Remote, TransferMethod } from '../../ports/server.ts';

interface LeasesOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** Called before and after each step, by its name; tests kill the agent there. */
  readonly checkpoint?: (step: string) => void | Promise<void>;
}

interface Lease {
  readonly leaseId: number;
  readonly method: TransferMethod;
  readonly openedAt: number;
  way: string | null;
  isRefused: boolean;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A key whose release fails is tried again after a minute, then after up to so long: an outage may be over. */
const RETRIED_MS = 5 * MINUTE_MS;
/** After so many failures in a row, the service is the cause. */
const MAX_FAILURES = 3;
/** A key is not used for longer: it ends after about a day, and a transfer takes time. */
const RENEWED_AFTER_MS = 20 * HOUR_MS;
/** At a stop, these calls get this time: a lost response leaves a key behind. */
const GRACE_MS = 5_000;

export class Leases {
  readonly #options: LeasesOptions;
  readonly #leases = new Map<JobId, Lease>();
  /** Results and live files of a job share a grant. */
  readonly #requests = new InTurn<JobId>();
  /** Jobs whose grant is in use although they may not be followed, with the number of users. */
  readonly #inUse = new Map<JobId, number>();
  /** Grants that could not be released, each with a pause of its own. */
  readonly #failing: BackOffs<number>;
  /** Called when a grant was made, which is to be released later. */
  onOpen: () => void = () => {};
  /** Called before a key is used: in a fleet, the next owner releases the key after a kill. */
  report: (jobId: JobId) => Promise<void> = async () => {};

  /** For the owner of the store only: pending requests in it belong to an ended process. */
  constructor(options: LeasesOptions) {
    this.#options = options;
    const { store, log, clock } = options;
    const pauses = { firstMs: MINUTE_MS, maxMs: RETRIED_MS, nowMs: () => clock.monotonic(), random: () => 1 };
    this.#failing = new BackOffs(pauses);
    const lost = store.transaction(() =>
      store.leases.loseAsked('the agent was killed while it requested a key: if there is one, it expires after a day'),
    );
    for (const { jobId } of lost) {
      log.warn({ jobId }, 'temporary key possibly left on the server, it expires after a day');
    }
  }

  inHand(jobId: JobId): Lease | undefined {
    const current = this.#leases.get(jobId);
    return current?.isRefused === false && this.#ageMs(current) < RENEWED_AFTER_MS ? current : undefined;
  }

  /** Records that the host refused the key of a job. The next transfer gets another one, unless the key is new. */
  refused(jobId: JobId): void {
    const current = this.#leases.get(jobId);
    if (current !== undefined) current.isRefused = this.#ageMs(current) >= HOUR_MS;
  }

  #ageMs({ openedAt }: Lease): number {
    return this.#options.clock.now() - openedAt;
  }

  hostOf(jobId: JobId): string | null {
    return this.#options.store.leases.lastOf(jobId)?.host ?? null;
  }

  countKeys(jobId: JobId): number {
    return this.#options.store.leases.countKeys(jobId);
  }

  /** The grant of a job; requests one if there is none. Null if the service has no method for it. */
  async take(jobId: JobId, remote: Remote, signal: AbortSignal): Promise<Lease | null> {
    const take = () => this.#take(jobId, remote, signal);
    return await this.#requests.run(jobId, signal, async () => this.inHand(jobId) ?? (await take()));
  }

  async #take(jobId: JobId, remote: Remote, signal: AbortSignal): Promise<Lease | null> {
    const { store, clock } = this.#options;
    // An old grant that cannot be released ends by itself.
    await this.#endAll((row) => row.jobId === jobId, remote, signal);
    await this.#at('lease:ask');
    const leaseId = store.transaction(() => store.leases.ask(jobId, clock.now()));
    await this.#at('lease:asked');
    const method = await this.#ask(leaseId, jobId, remote, signal);
    if (method === null) return null;
    const { protocol, serverHostname: host, sharedBasepath: basePath, credentials } = method;
    const known = { username: credentials?.username ?? null, publicKey: credentials?.publicKey ?? null };
    // Synchronous: nothing may happen between the response and this.
    store.transaction(() => store.leases.open({ leaseId, protocol, host, basePath, ...known }, clock.now()));
    const lease = { leaseId, method, openedAt: clock.now(), way: null, isRefused: false };
    this.#leases.set(jobId, lease);
    this.onOpen();
    await this.report(jobId);
    await this.#at('lease:open');
    return lease;
  }

  setWay(lease: Lease, way: string): void {
    if (lease.way === way) return;
    lease.way = way;
    const { store } = this.#options;
    store.transaction(() => store.leases.setWay(lease.leaseId, way));
  }

  /** Keeps the grant of a job while `work` runs, also if the job is not followed. */
  async during<T>(jobId: JobId, work: () => Promise<T>): Promise<T> {
    this.#inUse.set(jobId, (this.#inUse.get(jobId) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const others = (this.#inUse.get(jobId) as number) - 1;
      if (others > 0) this.#inUse.set(jobId, others);
      else this.#inUse.delete(jobId);
    }
  }

  /** Releases the open grants of a job; rejects with the first failure, after all others were tried. */
  async end(jobId: JobId, remote: Remote, signal: AbortSignal): Promise<void> {
    const [failed] = await this.#endAll((row) => row.jobId === jobId, remote, signal);
    if (failed !== undefined) throw failed.error;
  }

  /** Releases everything at a stop: the private keys end with the process. Rejects as `end`. */
  async endAll(remote: Remote, signal: AbortSignal): Promise<void> {
    const [failed] = await this.#endAll(() => true, remote, signal);
    if (failed !== undefined) throw failed.error;
  }

  /**
   * Releases the grants of earlier processes, of ended jobs, and expired ones; one that fails is tried again after its
   * own pause. Returns whether there was a grant.
   */
  async endUnused(remote: Remote, signal: AbortSignal): Promise<boolean> {
    const { store, clock } = this.#options;
    const isUsed = ({ leaseId, jobId, openedAt }: LeaseRow) => {
      const state = store.jobs.get(jobId)?.state;
      const isOld = clock.now() - Number(openedAt) > RENEWED_AFTER_MS + HOUR_MS;
      const isNeeded = state === 'watched' || state === 'ending' || this.#inUse.has(jobId);
      return this.#leases.get(jobId)?.leaseId === leaseId && isNeeded && !isOld;
    };
    if (store.leases.allOpen().length === 0) return false;
    await this.#endAll((row) => !isUsed(row) && this.#failing.isDue(row.leaseId), remote, signal);
    return true;
  }

  async #ask(leaseId: number, jobId: JobId, remote: Remote, signal: AbortSignal): Promise<TransferMethod | null> {
    const { store, clock } = this.#options;
    const end = (reason: string) => store.transaction(() => store.leases.end(leaseId, clock.now(), reason));
    if (signal.aborted) {
      end('it was stopped');
      throw stopped();
    }
    try {
      const method = await withGrace(clock, signal, (patient) => remote.getTransferMethod(jobId, patient));
      if (method === null) end('the service has no transfer method for this job');
      return method;
    } catch (thrown) {
      const error = asJobtailError(thrown);
      // Only a clear refusal proves that there is no key.
      if (error.policy.nothingDone) end(error.message);
      else store.transaction(() => store.leases.lose(leaseId, error.message));
      throw error;
    }
  }

  /** Releases each grant by itself; returns those that failed. Logs the first failure of each. */
  async #endAll(
    wanted: (row: LeaseRow) => boolean,
    remote: Remote,
    signal: AbortSignal,
  ): Promise<readonly Failed<LeaseRow>[]> {
    const { store, log } = this.#options;
    let failuresInARow = 0;
    const failed = await eachAlone(store.leases.allOpen().filter(wanted), async (row) => {
      // The others wait for the next time, and come before those that failed now.
      if (failuresInARow >= MAX_FAILURES) return;
      try {
        await this.#end(row, remote, signal);
        failuresInARow = 0;
      } catch (thrown) {
        const { ofOneFile } = asJobtailError(thrown).policy;
        failuresInARow = ofOneFile === 'no' ? MAX_FAILURES : failuresInARow + 1;
        throw thrown;
      }
    });
    for (const { thing, error } of failed) {
      const { jobId, leaseId } = thing;
      if (signal.aborted || this.#failing.failed(leaseId, error) > 1) continue;
      log.warn({ jobId, code: error.code, err: error.message }, 'cannot revoke a temporary key yet');
    }
    return failed;
  }

  async #end(row: LeaseRow, remote: Remote, signal: AbortSignal): Promise<void> {
    const { store, clock, log } = this.#options;
    await this.#at('lease:end');
    const refused = await this.#endOne(row, remote, signal);
    await this.#at('lease:ending');
    store.transaction(() => store.leases.end(row.leaseId, clock.now(), refused));
    this.#failing.worked(row.leaseId);
    if (this.#leases.get(row.jobId)?.leaseId === row.leaseId) this.#leases.delete(row.jobId);
    if (refused !== null) log.warn({ jobId: row.jobId, err: refused }, 'EndFileTransfer refused');
    await this.#at('lease:ended');
  }

  /** The method as it was granted, if the service requires that; otherwise from the store. */
  #methodOf(row: LeaseRow): TransferMethod {
    const current = this.#leases.get(row.jobId);
    return current?.leaseId === row.leaseId && current.method.given !== undefined ? current.method : methodOf(row);
  }

  /** The refusal of the service; null if it accepted. Rejects if it did not respond. */
  async #endOne(row: LeaseRow, remote: Remote, signal: AbortSignal): Promise<string | null> {
    const { clock } = this.#options;
    try {
      await withGrace(clock, signal, (patient) => remote.endTransfer(row.jobId, this.#methodOf(row), patient));
      return null;
    } catch (thrown) {
      const error = asJobtailError(thrown);
      // A repetition would get the same response, except after a lost session.
      if (error.policy.isRefusal) return error.message;
      throw error;
    }
  }

  async #at(step: string): Promise<void> {
    await this.#options.checkpoint?.(step);
  }
}

/** EndFileTransfer matches the public key. */
function methodOf({ protocol, host, basePath, username, publicKey }: LeaseRow): TransferMethod {
  const hasCredentials = username !== null || publicKey !== null;
  return {
    serverHostname: host,
    sharedBasepath: basePath,
    protocol,
    credentials: hasCredentials ? { username, privateKey: null, publicKey } : null,
  };
}

async function withGrace<T>(clock: Clock, signal: AbortSignal, call: (patient: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  let cancel = () => {};
  const begin = () => {
    cancel = clock.timer(GRACE_MS, () => late.abort());
  };
  if (signal.aborted) begin();
  else signal.addEventListener('abort', begin);
  return call(late.signal).finally(() => {
    cancel();
    signal.removeEventListener('abort', begin);
  });
}
