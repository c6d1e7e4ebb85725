/** The composition root: connects the parts of the engine for one configuration. */
import '../system/small-heap.ts';
import { Calls, queuedJobService, queuedRemote, type SharedService } from '../agent/calls.ts';
import { Failures } from '../agent/failures.ts';
import { Mirrors } from '../agent/live/mirror/mirror.ts';
import { RawBytes } from '../agent/live/raw-bytes.ts';
import { Agent } from '../agent/loop/agent.ts';
import type { AgentContext } from '../agent/loop/context.ts';
import { ALONE, type JobRegister, type Ownership } from '../agent/ownership.ts';
import type { PassContext } from '../agent/pass/complete-pass.ts';
import { JobPolls, type PollContext } from '../agent/poll/poll.ts';
import type { Log } from '../agent/ports/host.ts';
import type { JobService, Remote } from '../agent/ports/server.ts';
import { DirectLiveFiles } from '../agent/results/download/direct-bytes.ts';
import type { Refusals } from '../agent/results/listing.ts';
import { Results, resultsDirectory } from '../agent/results/results.ts';
import { Scheduler } from '../agent/schedule/scheduler.ts';
import { ServerShare } from '../agent/server-share.ts';
import type { Config } from '../config/config.ts';
import type { JobId } from '../job.ts';
import { MISMATCH_EVENTS } from '../mismatch.ts';
import { printable } from '../printable.ts';
import { textSources } from '../remote/text/text-source.ts';
import { isOnNetworkFileSystem } from '../store/database.ts';
import type { ResultSyncRow } from '../store/rows.ts';
import { Commits, type Store } from '../store/store.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { DiskReserve, fileCalls } from '../system/files.ts';
import type { Observer } from './connection.ts';
import { everyTenMinutes } from './every-ten-minutes.ts';
import type { Transfers } from './transfers.ts';

/** Results of a job that are written while the next ones are requested. */
const RESULTS_BEHIND = 7;
const MAX_RESULTS_AT_A_TIME = 64;
const MAX_NAMED = 3;

function refusedResults(jobId: JobId, { count, fresh }: Refusals): object {
  const refused = fresh.slice(0, MAX_NAMED).map(({ name, reason }) => `${name}: ${reason}`);
  return { jobId, count, refused, hint: `agent status ${jobId} shows the reasons` };
}

export interface Engine {
  readonly agent: Agent;
  callsWaiting(): number;
  readonly pass: PassContext;
  polls(jobId: JobId): JobPolls;
}

export interface EngineOptions {
  readonly config: Config;
  readonly store: Store;
  readonly transfers: Transfers;
  readonly remote: Remote;
  readonly jobService?: JobService | null;
  readonly log: Log;
  /** `all` if omitted. */
  readonly follows?: 'all' | 'asked';
  readonly observer?: Observer;
  readonly onProgress?: (progress: ResultSyncRow) => void;
  readonly clock?: Clock;
  /** In [0, 1), for jitter; `Math.random` if omitted. */
  readonly random?: () => number;
  readonly ownership?: Ownership;
  readonly register?: JobRegister;
  /** Measured share of the server; if omitted, `service.requestsPerMinute` is the only limit. */
  readonly share?: ServerShare | undefined;
  /** The agents of the fleet, if there is one. */
  readonly shared?: SharedService;
}

export function buildEngine(options: EngineOptions): Engine {
  const { config, store, transfers, remote, log, follows = 'all', observer, onProgress } = options;
  const { jobService = null, clock = systemClock, random = Math.random, ownership = ALONE } = options;
  const { mirror, poll, service, results } = config;
  const { requestsPerMinute, concurrency } = service;
  const { share = new ServerShare({ requestsPerMinute, monotonic: clock.monotonic }), shared } = options;
  const calls = new Calls({ concurrency, share, clock, shared });
  const { now, monotonic } = clock;
  const commits = new Commits({ transaction: (work) => store.transaction(work), timer: clock.timer });
  const onNetwork = isOnNetworkFileSystem(mirror.directory);
  const countOfRewrites = everyTenMinutes(monotonic);
  let isUnsteady = false;
  const whole = queuedRemote(remote, calls, 'raw');
  const direct = transfers.directOf(config);
  const reserve = new DiskReserve(mirror.directory, mirror.minFreeBytes, fileCalls(onNetwork));
  const resultsOf = (jobId: JobId) => resultsDirectory(mirror.directory, jobId);
  const directBytes = direct && new DirectLiveFiles({ direct, remote: whole, reserve, resultsOf });
  const batchLimit = { files: Number.POSITIVE_INFINITY };
  const pollContext: PollContext = {
    store,
    commit: (write, withinMs) => commits.commit(write, withinMs),
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
      onMismatch({ jobId, taskId, file }, { kind, at, generation, reason }) {
        observer?.emit('mismatch', kind);
        const isOfRemote = kind === 'truncated' || kind === 'rewritten';
        // A progress file is rewritten all the time: of a job, the first line, then one in ten minutes, with their number.
        const count = isOfRemote && file === 'progress' ? countOfRewrites(jobId) : 1;
        if (count > 0)
          log[isOfRemote ? 'info' : 'warn'](
            { jobId, taskId, file, offset: at, generation, reason, ...(count > 1 && { count }) },
            MISMATCH_EVENTS[kind],
          );
      },
      onUnsteady({ jobId, taskId, file }) {
        const hint = 'mount it with inode numbers of the server, or set mirror.directory to another file system';
        if (!isUnsteady) log.warn({ jobId, taskId, file, hint }, 'inodes or times of mirrors change by themselves');
        isUnsteady = true;
      },
      checkpoint: () => {},
      commit: (row) => store.transaction(() => store.liveFiles.save(row)),
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
    onFetched: (jobId, name, bytes, kind) => {
      observer?.emit('fetched', bytes, kind);
      if (kind !== 'same') log.debug({ jobId, file: printable(name), bytes }, 'result downloaded');
    },
    onRefused: (jobId, refusals) => log.warn({ ...refusedResults(jobId, refusals) }, 'results refused'),
    onFallback: (jobId, reason) =>
      // With auto, the service is no exception.
      log[results.transfer === 'auto' ? 'info' : 'warn']({ jobId, err: reason }, 'results not transferred directly'),
  });
  const pass: PassContext = {
    store,
    clock,
    remote: queuedRemote(remote, calls, 'live'),
    results: synced,
    direct: directBytes,
    mirrorDirectory: mirror.directory,
    pauseMs: poll.minIntervalMs,
  };
  const context: AgentContext = {
    ...pass,
    jobService: jobService && queuedJobService(jobService, calls, 'live'),
    log,
    random,
    limits: { intervals: poll, resultsIntervalMs: results.intervalMs, stallAfterMs: config.stallAfterMs },
    events: {
      onAppended: (bytes) => observer?.emit('appended', bytes),
      onTasksFound: (tasks, by) => observer?.emit('tasksFound', tasks, by),
      onJobStates: (outcome) => observer?.emit('jobStatesRead', outcome),
    },
    poll: pollContext,
    calls,
    bare: { remote, jobService },
    waiting: {
      patient: queuedRemote(remote, calls, 'patient'),
      raw: queuedRemote(remote, calls, 'raw'),
      wanted: queuedRemote(remote, calls, 'wanted'),
    },
    batchLimit,
    scheduler: new Scheduler(clock),
    failures: new Failures(log),
    asked: follows === 'asked' ? new Set() : undefined,
    served: new Set(),
  };
  const agent = new Agent({
    context,
    resultsOfMine: results.enabled,
    commits,
    hide: (text) => transfers.secrets.hide(text),
    ownership,
    register: options.register,
  });
  return {
    agent,
    callsWaiting: () => calls.waiting,
    polls: (jobId) => new JobPolls(jobId, pollContext),
    pass,
  };
}
