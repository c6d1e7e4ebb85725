import { getEventListeners } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Log } from '../../../../src/agent/ports/host.ts';
import type { TransferMethod } from '../../../../src/agent/ports/server.ts';
import { Leases } from '../../../../src/agent/results/download/leases.ts';
import { JobtailError } from '../../../../src/errors.ts';
import type { JobId } from '../../../../src/job.ts';
import { Store } from '../../../../src/store/store.ts';
import { until } from '../../../support/e2e-until.ts';
import { temporaryDirectory } from '../../../support/temp-directory.ts';
import { FilesRemote, JOB } from '../place.ts';

const OTHER = '502' as JobId;
const HOUR_MS = 3_600_000;
const signal = new AbortController().signal;

/** A service that counts its keys. */
class KeyServer extends FilesRemote {
  readonly open = new Set<string>();
  made = 0;
  ended: TransferMethod[] = [];
  failure: JobtailError | undefined;
  /** Called when a key was made and its answer is on its way. */
  onMade: () => void | Promise<void> = () => {};

  override async getTransferMethod(): Promise<TransferMethod | null> {
    if (this.failure !== undefined) throw this.failure;
    const publicKey = `ssh-ed25519 key-${++this.made}`;
    this.open.add(publicKey);
    await this.onMade();
    const credentials = { username: 'hpc', privateKey: 'the secret', publicKey };
    return { serverHostname: 'h:22', sharedBasepath: '/scratch/501', protocol: 'SftpScp', credentials };
  }

  override async endTransfer(_jobId: JobId, method: TransferMethod): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
    this.ended.push(method);
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
    const say = (_: unknown, message: string) => void this.said.push(message);
    const log: Log = { debug: () => {}, info: say, warn: say, error: say };
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

describe('a lease', () => {
  it('is got once a job, kept, and given back with the public key and without the private one', async () => {
    const place = new LeasePlace();
    const first = await place.leases.take(JOB, place.server, signal);
    expect(await place.leases.take(JOB, place.server, signal)).toBe(first);
    await place.leases.take(OTHER, place.server, signal);
    expect(place.server.made).toBe(2);
    await place.leases.end(JOB, place.server, signal);
    expect([...place.server.open]).toEqual(['ssh-ed25519 key-2']);
    expect(place.server.ended).toEqual([
      {
        serverHostname: 'h:22',
        sharedBasepath: '/scratch/501',
        protocol: 'SftpScp',
        credentials: { username: 'hpc', privateKey: null, publicKey: 'ssh-ed25519 key-1' },
      },
    ]);
    await place.leases.endAll(place.server, signal);
    expect(place.server.open.size).toBe(0);
    expect(place.store.leases.lastOf(JOB)).toMatchObject({ state: 'ended', reason: null });
  });

  it('is reported before it is used, so that the next owner of the job can end it', async () => {
    const place = new LeasePlace();
    const reported: (string | undefined)[] = [];
    place.leases.report = async (jobId) => void reported.push(jobId, place.store.leases.lastOf(jobId)?.state);
    await place.leases.take(JOB, place.server, signal);
    expect(reported).toEqual([JOB, 'open']);
  });

  it('is renewed before a day is over', async () => {
    const place = new LeasePlace();
    await place.leases.take(JOB, place.server, signal);
    place.now += 19 * HOUR_MS;
    await place.leases.take(JOB, place.server, signal);
    expect(place.server.made).toBe(1);
    place.now += 2 * HOUR_MS;
    await place.leases.take(JOB, place.server, signal);
    expect([...place.server.open]).toEqual(['ssh-ed25519 key-2']);
    // Some services count the open keys of a job: the old one has ended when the next one is requested.
    const made = ['lease:ask', 'lease:asked', 'lease:open'];
    expect(place.steps).toEqual([...made, 'lease:end', 'lease:ending', 'lease:ended', ...made]);
    const openAfter = async (hours: number) => {
      place.now += hours * HOUR_MS;
      await place.leases.endUnused(place.server, signal);
      return place.server.open.size;
    };
    // A transfer that it began may go on for an hour.
    expect([await openAfter(20.9), await openAfter(0.2)]).toEqual([1, 0]);
  });

  it('is given back when its job is over, and not before', async () => {
    const place = new LeasePlace();
    await place.leases.take(JOB, place.server, signal);
    await place.leases.endUnused(place.server, signal);
    place.store.jobs.setState(JOB, 'ending');
    await place.leases.endUnused(place.server, signal);
    expect(place.server.open.size).toBe(1);
    place.store.jobs.setState(JOB, 'settled');
    const hadSome = () => place.leases.endUnused(place.server, signal);
    expect([await hadSome(), place.server.open.size, await hadSome()]).toEqual([true, 0, false]);
  });

  it('whose end is refused is reported once, and not tried again', async () => {
    const place = new LeasePlace();
    await place.leases.take(JOB, place.server, signal);
    place.server.open.clear();
    await place.leases.endAll(place.server, signal);
    await place.leases.endAll(place.server, signal);
    expect(place.server.ended).toHaveLength(1);
    expect(place.said).toHaveLength(1);
    expect(place.said[0]).toContain('EndFileTransfer refused');
    expect(place.store.leases.lastOf(JOB)).toMatchObject({ state: 'ended', reason: 'no such key' });
  });

  it('that two lists of a job use is kept until the last of them has ended', async () => {
    const place = new LeasePlace();
    await place.leases.take(JOB, place.server, signal);
    place.store.jobs.setState(JOB, 'settled');
    const ends: (() => void)[] = [];
    const [first, second] = [1, 2].map(() =>
      place.leases.during(JOB, () => new Promise<void>((resolve) => ends.push(resolve))),
    );
    ends[0]?.();
    await first;
    await place.leases.endUnused(place.server, signal);
    expect(place.server.open.size).toBe(1);
    ends[1]?.();
    await second;
    await place.leases.endUnused(place.server, signal);
    expect(place.server.open.size).toBe(0);
  });

  it('that cannot be given back now is, later', async () => {
    const place = new LeasePlace();
    await place.leases.take(JOB, place.server, signal);
    place.server.failure = new JobtailError('unreachable', 'down');
    await expect(place.leases.endAll(place.server, signal)).rejects.toMatchObject({ code: 'unreachable' });
    expect(place.store.leases.lastOf(JOB)?.state).toBe('open');
    place.server.failure = undefined;
    place.restart();
    await place.leases.endUnused(place.server, signal);
    expect(place.server.open.size).toBe(0);
  });

  it('that is refused leaves nothing open; after a lost response it is recorded as unknown', async () => {
    const place = new LeasePlace();
    place.server.failure = new JobtailError('fault', 'it has reached its number of 6 temporary keys');
    await expect(place.leases.take(JOB, place.server, signal)).rejects.toMatchObject({ code: 'fault' });
    expect(place.store.leases.lastOf(JOB)).toMatchObject({ state: 'ended', reason: expect.stringContaining('6') });
    place.server.failure = new JobtailError('interrupted', 'the connection broke');
    await expect(place.leases.take(JOB, place.server, signal)).rejects.toMatchObject({ code: 'interrupted' });
    expect(place.store.leases.lastOf(JOB)).toMatchObject({ state: 'unknown', reason: 'the connection broke' });
    vi.spyOn(place.server, 'getTransferMethod').mockResolvedValueOnce(null);
    expect(await place.leases.take(JOB, place.server, signal)).toBeNull();
    const reason = 'the service has no transfer method for this job';
    expect(place.store.leases.lastOf(JOB)).toMatchObject({ state: 'ended', reason });
  });

  it('that is over is remembered while it may count as a key of the job, at most twenty of them', async () => {
    const place = new LeasePlace();
    await place.leases.take(OTHER, place.server, signal);
    for (const code of ['fault', 'interrupted', 'timeout', 'fault'] as const) {
      place.server.failure = new JobtailError(code, 'not now');
      await expect(place.leases.take(JOB, place.server, signal)).rejects.toMatchObject({ code });
    }
    const db = new Database(path.join(place.directory, 'agent.db'), { readonly: true });
    const rows = db.prepare('SELECT job_id, state FROM transfer_leases ORDER BY lease_id').all();
    db.close();
    expect(rows).toEqual([
      { job_id: OTHER, state: 'open' },
      { job_id: JOB, state: 'unknown' },
      { job_id: JOB, state: 'unknown' },
      { job_id: JOB, state: 'ended' },
    ]);
    expect(place.leases.countKeys(JOB)).toBe(2);
    place.server.failure = undefined;
    for (let count = 0; count < 30; count++) {
      await place.leases.take(JOB, place.server, signal);
      await place.leases.end(JOB, place.server, signal);
    }
    expect(place.leases.countKeys(JOB)).toBe(21);
    expect(place.leases.countKeys(OTHER)).toBe(1);
  });

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

  it('whose request waits for another one of the job ends when it is stopped, not with that one', async () => {
    const place = new LeasePlace();
    const answers: (() => void)[] = [];
    place.server.onMade = () => new Promise<void>((resolve) => void answers.push(resolve));
    const first = place.leases.take(JOB, place.server, signal);
    const stop = new AbortController();
    const second = place.leases.take(JOB, place.server, stop.signal);
    stop.abort();
    await expect(second).rejects.toMatchObject({ code: 'aborted' });
    const third = place.leases.take(JOB, place.server, signal);
    await until('an answer', () => answers.length === 1);
    answers[0]?.();
    expect(await third).toBe(await first);
    expect(place.server.made).toBe(1);
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

describe('a key that cannot be revoked', () => {
  /** Fails for some jobs. */
  class SomeFail extends KeyServer {
    fails = true;
    failing = [JOB];
    readonly tried: JobId[] = [];
    override async endTransfer(jobId: JobId, method: TransferMethod): Promise<void> {
      this.tried.push(jobId);
      if (this.fails && this.failing.includes(jobId))
        throw new JobtailError('http-status', 'the service answers with status 500');
      await super.endTransfer(jobId, method);
    }
  }

  async function withKeys(jobs = [JOB, OTHER]) {
    const place = new LeasePlace(jobs);
    const server = new SomeFail();
    for (const jobId of jobs) await place.leases.take(jobId, server, signal);
    place.store.transaction(() => {
      for (const jobId of jobs) place.store.jobs.setState(jobId, 'settled');
    });
    return { place, server };
  }

  it('keeps no other from being revoked, and is tried again after a pause of its own, logged once', async () => {
    const { place, server } = await withKeys();
    const minutes: number[] = [];
    for (let minute = 0; minute < 30; minute++) {
      const tried = server.tried.length;
      await place.leases.endUnused(server, signal);
      if (server.tried.length > tried) minutes.push(minute);
      place.now += 60_000;
    }
    expect(minutes).toEqual([0, 1, 3, 7, 12, 17, 22, 27]);
    expect(server.open.size).toBe(1);
    expect(server.tried.filter((jobId) => jobId === OTHER)).toHaveLength(1);
    expect(place.said).toEqual(['cannot revoke a temporary key yet']);
    server.fails = false;
    place.now += 5 * 60_000;
    await place.leases.endUnused(server, signal);
    expect(server.open.size).toBe(0);
  });

  it('keeps no other from being revoked at a stop, whose caller names its failure', async () => {
    const { place, server } = await withKeys();
    await expect(place.leases.endAll(server, AbortSignal.abort())).rejects.toMatchObject({ code: 'http-status' });
    expect(server.open.size).toBe(1);
    expect(place.said).toEqual([]);
  });

  it.each([
    [[0, 1, 3], 5],
    [[1, 2], 5],
    [[0, 1, 2], 3],
  ])('keeps those behind three in a row from this round only: %j of five fail', async (failing, tried) => {
    const jobs = ['511', '512', '513', '514', '515'] as JobId[];
    const { place, server } = await withKeys(jobs);
    server.failing = failing.flatMap((index) => jobs[index] ?? []);
    await place.leases.endUnused(server, signal);
    expect(server.tried).toEqual(jobs.slice(0, tried));
    await place.leases.endUnused(server, signal);
    expect(server.open.size).toBe(failing.length);
  });

  it('does not keep its own job from the next key', async () => {
    const { place, server } = await withKeys();
    place.now += 21 * HOUR_MS;
    const next = await place.leases.take(JOB, server, signal);
    expect([next === null, server.made]).toEqual([false, 3]);
    // The end of the former one is not that of the next one.
    server.failing = [];
    place.store.transaction(() => place.store.jobs.setState(JOB, 'watched'));
    place.now += HOUR_MS;
    await place.leases.endUnused(server, signal);
    expect(await place.leases.take(JOB, server, signal)).toBe(next);
    expect(server.made).toBe(3);
  });

  it('ends the round if the service cannot be reached: it is not called for each key', async () => {
    const { place, server } = await withKeys();
    server.failure = new JobtailError('unreachable', 'connection refused');
    server.fails = false;
    await place.leases.endUnused(server, signal);
    expect(server.tried).toEqual([JOB]);
  });
});

describe('killed', () => {
  const STEPS = ['lease:ask', 'lease:asked', 'lease:open', 'lease:end', 'lease:ending', 'lease:ended'];

  it.each(STEPS)('at %s, no key stays after the next start', async (step) => {
    const place = new LeasePlace();
    place.killAt = step;
    const work = async () => {
      await place.leases.take(JOB, place.server, signal);
      await place.leases.end(JOB, place.server, signal);
    };
    const killed = await work().catch((error: Error) => error.cause ?? error);
    expect(killed).toBeInstanceOf(Killed);
    place.restart();
    await place.leases.endUnused(place.server, signal);
    expect(place.server.open.size).toBe(0);
    expect(place.store.leases.allOpen()).toEqual([]);
    // And it goes on.
    await place.leases.take(JOB, place.server, signal);
    await place.leases.end(JOB, place.server, signal);
    expect(place.server.open.size).toBe(0);
  });

  it('a key whose response was lost in a kill is reported, and ends by itself', async () => {
    const place = new LeasePlace();
    place.server.onMade = () => {
      throw new Killed();
    };
    const asked = place.store.leases.ask(JOB, place.now);
    expect(asked).toBeGreaterThan(0);
    place.restart();
    expect(place.store.leases.lastOf(JOB)).toMatchObject({ state: 'unknown' });
    expect(place.said).toEqual(['temporary key possibly left on the server, it expires after a day']);
    place.restart();
    expect(place.said).toHaveLength(1);
  });
});
