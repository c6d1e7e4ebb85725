/** The composition root: connects the parts of the engine for one configuration. */
import '../system/small-heap.ts';
import { Calls, queuedJobService, queuedRemote, type SharedService } from '../agent/calls.ts';
import { Failures } from '../agent/failures.ts';
import { Mirrors } from '../agent/live/mirror/mirror.ts';
import { RawBytes } from '../agent/live/raw-bytes.ts';
import { Agent } from '../agent/loop/agent.ts';
import type { AgentContext } from '../agent/loop/context.ts';
import { ALONE, type KnownJobs, type Ownership } from '../agent/ownership.ts';
import type { PassContext } from '../agent/pass/complete-pass.ts';
import type { PollContext } from '../agent/poll/poll.ts';
import type { Log } from '../agent/ports/host.ts';
import type { JobService, Remote } from '../agent/ports/server.ts';
import { DirectLiveFiles } from '../agent/results/download/direct-bytes.ts';
import { Results, resultsDirectory } from '../agent/results/results.ts';
import { Scheduler } from '../agent/schedule/scheduler.ts';
import { ServerShare } from '../agent/server-share.ts';
import type { Config } from '../config/config.ts';
import type { JobId } from '../job.ts';
import { PassingLimit } from '../remote/text/batch.ts';
import { textSources } from '../remote/text/text-source.ts';
import { isOnNetworkFileSystem } from '../store/database.ts';
import type { ResultSyncRow } from '../store/rows.ts';
import { Commits, type Store } from '../store/store.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { DiskReserve, fileCalls } from '../system/files.ts';
import { jobEvents, liveFileEvents, type Observer, resultEvents } from './observer.ts';
import type { Transfers } from './transfers.ts';

/** Results of a job that are written while the next ones are requested. */
const RESULTS_BEHIND = 7;
const MAX_RESULTS_AT_A_TIME = 64;

export interface Engine {
  readonly agent: Agent;
  callsWaiting(): number;
  readonly pass: PassContext;
}

export interface EngineOptions {
  readonly config: Config;
  readonly store: Store;
  readonly transfers: Transfers;
  readonly remote: Remote;
  readonly jobService?: JobService | null;
  readonly log: Log;
  /** Creates the notifications of what happened so far. */
  readonly catchUp: () => Promise<void>;
  /** `all` if omitted. */
  readonly follows?: 'all' | 'asked';
  readonly observer?: Observer;
  readonly onProgress?: (progress: ResultSyncRow) => void;
  readonly clock?: Clock;
  /** In [0, 1), for jitter; `Math.random` if omitted. */
  readonly random?: () => number;
  readonly ownership?: Ownership;
  readonly knownJobs?: KnownJobs;
  /** Measured share of the server; if omitted, `service.requestsPerMinute` is the only limit. */
  readonly share?: ServerShare | undefined;
  /** The agents of the fleet, if there is one. */
  readonly shared?: SharedService;
}

export function buildEngine(options: EngineOptions): Engine {
  const { config, store, transfers, remote, log, follows = 'all', onProgress } = options;
  const { jobService = null, clock = systemClock, random = Math.random, ownership = ALONE } = options;
  const { mirror, poll, service, results } = config;
  const { requestsPerMinute, concurrency } = service;
  const { share = new ServerShare({ requestsPerMinute, monotonic: clock.monotonic }), shared } = options;
  const calls = new Calls({ concurrency, share, clock, shared });
  const { now, monotonic } = clock;
  const commits = new Commits({ transaction: (work) => store.transaction(work), timer: clock.timer });
  const onNetwork = isOnNetworkFileSystem(mirror.directory);
  const whole = queuedRemote(remote, calls, 'raw');
  const direct = transfers.directOf(config);
  const reserve = new DiskReserve(mirror.directory, mirror.minFreeBytes, fileCalls(onNetwork));
  const resultsOf = (jobId: JobId) => resultsDirectory(mirror.directory, jobId);
  const directBytes = direct && new DirectLiveFiles({ direct, remote: whole, reserve, resultsOf });
  const batchLimit = new PassingLimit(monotonic);
  const pollContext: PollContext = {
    store,
    commitTogether: (write, withinMs) => commits.commit(write, withinMs),
    sourceOf: textSources({
      capabilities: store.capabilities,
      direct: directBytes,
      batchLimit,
      onChange: (what) => log.info({ what }, 'server capabilities changed'),
    }),
    rawBytes: new RawBytes(monotonic),
    now,
    monotonic,
    liveFiles: {
      mirrors: new Mirrors(mirror.directory, onNetwork, ownership),
      overlapBytes: poll.overlapBytes,
      keepGenerations: mirror.keepGenerations,
      now,
      ...liveFileEvents(options, monotonic),
      checkpoint: () => {},
      commitNow: (row) => store.transaction(() => store.liveFiles.save(row)),
    },
  };
  const synced = new Results({
    store,
    mirrorDirectory: mirror.directory,
    ownership,
    onNetwork,
    minFreeBytes: mirror.minFreeBytes,
    rules: results,
    clock,
    parallel: Math.min(MAX_RESULTS_AT_A_TIME, concurrency + RESULTS_BEHIND),
    silentMs: service.timeoutMs,
    direct,
    onProgress,
    ...resultEvents(options, results.transfer !== 'auto'),
  });
  const context: AgentContext = {
    store,
    clock,
    remote: queuedRemote(remote, calls, 'live'),
    results: synced,
    direct: directBytes,
    mirrorDirectory: mirror.directory,
    pauseMs: poll.minIntervalMs,
    jobService: jobService && queuedJobService(jobService, calls, 'live'),
    log,
    random,
    limits: { intervals: poll, resultsIntervalMs: results.intervalMs, stallAfterMs: config.stallAfterMs },
    events: jobEvents(options),
    poll: pollContext,
    calls,
    bare: { remote, jobService },
    waiting: {
      patient: queuedRemote(remote, calls, 'patient'),
      raw: whole,
      wanted: queuedRemote(remote, calls, 'wanted'),
    },
    batchLimit,
    scheduler: new Scheduler(clock),
    failures: new Failures(log),
    catchUp: options.catchUp,
    asked: follows === 'asked' ? new Set() : undefined,
    served: new Set(),
  };
  const agent = new Agent({
    context,
    resultsOfMine: results.enabled,
    commits,
    hide: (text) => transfers.secrets.hide(text),
    ownership,
    knownJobs: options.knownJobs,
  });
  return { agent, callsWaiting: () => calls.waiting, pass: context };
}
