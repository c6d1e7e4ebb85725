import { getEventListeners } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Log } from '../../../../src/agent/ports/host.ts';
import type { TransferMethod } from '../../../../src/agent/ports/server.ts';
import { Leases } from '../../../../src/agent/results/download/leases.ts';
import { type ErrorCode, JobtailError } from '../../../../src/errors.ts';
import type { JobId } from '../../../../src/job.ts';
import { logLine } from '../../../../src/printable.ts';
import type { WatchState } from '../../../../src/store/rows.ts';
import { Store } from '../../../../src/store/store.ts';
import { expectCases, SILENT } from '../../../support/errors.ts';
import { temporaryDirectory } from '../../../support/temp-directory.ts';
import { FilesRemote, JOB } from '../place.ts';

const OTHER = '502' as JobId;
const signal = new AbortController().signal;

/** A service that counts its keys. */
class KeyServer extends FilesRemote {
  readonly open = new Set<string>();
  made = 0;
  failure: JobtailError | undefined;
  /** Jobs whose keys it fails to revoke. */
  failing: string[] = [];
  hasMethod = true;
  readonly noted: string[] = [];
  /** Called when a key was made and its answer is on its way. */
  onMade: () => void | Promise<void> = () => {};

  override async getTransferMethod(): Promise<TransferMethod | null> {
    this.noted.push('get');
    if (this.failure !== undefined) throw this.failure;
    if (!this.hasMethod) return null;
    const publicKey = `ssh-ed25519 key-${++this.made}`;
    this.open.add(publicKey);
    await this.onMade();
    const credentials = { username: 'hpc', privateKey: 'the secret', publicKey };
    return { serverHostname: 'h:22', sharedBasepath: '/scratch/501', protocol: 'SftpScp', credentials };
  }

  override async endTransfer(jobId: JobId, method: TransferMethod): Promise<void> {
    this.noted.push(`end for ${jobId} ${JSON.stringify(method)}`);
    if (this.failing.includes(jobId)) throw new JobtailError('http-status', 'the service answers with status 500');
    if (this.failure !== undefined) throw this.failure;
    if (!this.open.delete(method.credentials?.publicKey ?? '')) throw new JobtailError('fault', 'no such key');
  }
}

class Killed extends Error {}

class LeasePlace {
  readonly directory = temporaryDirectory();
  readonly server = new KeyServer();
  readonly said: string[] = [];
  now = 1_000_000_000;
  killAt: string | undefined;
  readonly steps: string[] = [];
  readonly timers: number[] = [];
  cancelled = 0;
  store: Store;
  leases: Leases;

  constructor(jobs = [JOB, OTHER]) {
    this.store = this.#open();
    for (const jobId of jobs) {
      const order = { jobId, tasks: [], files: [], results: true, settleAfterMs: null, source: 'command' } as const;
      this.store.jobs.watch(order, this.now);
    }
    this.leases = this.#leases();
    onTestFinished(() => this.store.close());
  }

  /** A new process over what the old one left. */
  restart(): void {
    this.store.close();
    this.killAt = undefined;
    this.store = this.#open();
    this.leases = this.#leases();
  }

  #open(): Store {
    return new Store({ directory: this.directory, service: 'model', owner: true, now: () => this.now });
  }

  #leases(): Leases {
    const say = (fields: object, message: string) => void this.said.push(logLine({ ...fields }, message));
    const log: Log = { ...SILENT, info: say, warn: say, error: say };
    const timer = (ms: number) => {
      this.timers.push(ms);
      return () => void this.cancelled++;
    };
    const clock = { now: () => this.now, monotonic: () => this.now, timer };
    const checkpoint = (step: string) => {
      this.steps.push(step);
      if (step === this.killAt) throw new Killed(step);
    };
    return new Leases({ store: this.store, clock, log, checkpoint });
  }
}

/** The steps of leases.txt: what a caller or the service does, and the calls, rows and lines of the log that follow. */
async function heldKeys(written: string): Promise<string[]> {
  const jobs = [...new Set([JOB, OTHER, ...(written.match(/\b5\d\d\b/g) ?? [])])] as JobId[];
  const place = new LeasePlace(jobs);
  const { server } = place;
  const result: string[] = [];
  const uses: (() => void)[] = [];
  const stateOf = (jobId: JobId) => {
    const { state, reason } = place.store.leases.lastOf(jobId) ?? {};
    return state === undefined ? [] : [`${jobId} ${state}${reason == null ? '' : ` (${reason})`}`];
  };
  const serve = (changes: Partial<KeyServer>) => void Object.assign(server, changes);
  for (const step of written.split('; ')) {
    const [word = '', first = '', ...rest] = step.split(' ');
    const [job = JOB] = [first, ...rest].filter((each) => /^5\d\d$/.test(each)) as JobId[];
    const work: Readonly<Record<string, () => unknown>> = {
      take: async () => {
        const times = first === 'twice' ? [1, 2] : [1];
        const taken = await Promise.all(times.map(() => place.leases.take(job, server, signal)));
        const keys = [...new Set(taken)].map((lease) => lease?.method.credentials?.publicKey ?? 'no method');
        return keys.join(' and ');
      },
      end: () => {
        if (first === 'all') return place.leases.endAll(server, rest[0] === 'stopped' ? AbortSignal.abort() : signal);
        return first === 'unused' ? place.leases.endUnused(server, signal) : place.leases.end(job, server, signal);
      },
      // Of the transfers that use a key, the first one that began ends first.
      use: () => void place.leases.during(job, () => new Promise<void>((resolve) => uses.push(resolve))),
      unuse: () => uses.shift()?.(),
      minutes: () => void Object.assign(place, { now: place.now + Number(first) * 60_000 }),
      state: () => place.store.transaction(() => place.store.jobs.setState(job, first as WatchState)),
      fails: () => serve({ failure: new JobtailError(first as ErrorCode, rest.join(' ')) }),
      refuses: () => serve({ failing: [first, ...rest].filter((each) => each !== '') }),
      works: () => serve({ failure: undefined }),
      none: () => serve({ hasMethod: false }),
      forgets: () => server.open.clear(),
      kill: () => void Object.assign(place, { killAt: rest[0] }),
      restart: () => place.restart(),
    };
    if (work[word] === undefined) throw new Error(`no step: ${step}`);
    for (const list of [server.noted, place.steps, place.said]) list.length = 0;
    place.leases.report = async (jobId) => void server.noted.push(`report of ${stateOf(jobId)}`);
    const outcome = await Promise.resolve()
      .then(work[word])
      .catch((thrown: Error) => `thrown ${thrown instanceof JobtailError ? thrown.code : thrown.name}`);
    const shown = [outcome, ...server.noted, ...place.steps, ...place.said].filter((each) => each !== undefined);
    const open = [...server.open].map((key) => key.replace('ssh-ed25519 ', '')).join(' and ') || 'nothing';
    if (shown.length > 0)
      result.push(`${step}: ${shown.join(', ')} -> ${[`${open} open`, ...jobs.flatMap(stateOf)].join(', ')}`);
  }
  expect(place.store.leases.allOpen().length).toBeLessThanOrEqual(server.open.size);
  return result;
}

it('each key is made, kept, revoked and reported as is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'leases.txt'), heldKeys);
});

describe('a lease', () => {
  it('is still recorded and given back when the agent is stopped while it asks', async () => {
    const place = new LeasePlace();
    const stop = new AbortController();
    place.server.onMade = () => stop.abort();
    await place.leases.take(JOB, place.server, stop.signal);
    expect(place.store.leases.lastOf(JOB)?.state).toBe('open');
    await place.leases.endAll(place.server, stop.signal);
    expect(place.server.open.size).toBe(0);
    // So long a stop waits for each of both calls.
    expect([place.timers, place.cancelled]).toEqual([[5_000, 5_000], 2]);
    const later = new AbortController();
    await place.leases.take(OTHER, place.server, later.signal);
    expect(getEventListeners(later.signal, 'abort')).toEqual([]);
  });

  it('is in the store without its private key', async () => {
    const place = new LeasePlace();
    await place.leases.take(JOB, place.server, signal);
    place.store.close();
    for (const name of fs.readdirSync(place.directory)) {
      expect(fs.readFileSync(path.join(place.directory, name)).includes('the secret'), name).toBe(false);
    }
    place.restart();
  });
});
