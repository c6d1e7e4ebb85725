/** The composition root: puts the parts together for one configuration. */

import { Calls, QueuedRemote } from '../agent/calls.ts';
import { Backlogs } from '../agent/live/append/long-backlog.ts';
import { RawBytes } from '../agent/live/append/raw-bytes.ts';
import { OpenMirrors } from '../agent/live/mirror/open-mirrors.ts';
import { Witnesses } from '../agent/live/sightings.ts';
import { TextEncoding } from '../agent/live/text/encoding.ts';
import { Agent } from '../agent/loop/agent.ts';
import type { CompletePassOptions } from '../agent/pass/complete-pass.ts';
import { BatchLimit } from '../agent/poll/batch.ts';
import { JobPolls, type PollContext } from '../agent/poll/poll.ts';
import { QuietFiles } from '../agent/poll/quiet-files.ts';
import type { Log, Remote, Session } from '../agent/ports.ts';
import type { Refusals } from '../agent/results/listing/skipped-names.ts';
import { Results } from '../agent/results/results.ts';
import type { Config } from '../config/config.ts';
import { matchesInTime } from '../config/fault-pattern.ts';
import { loadTls } from '../config/load.ts';
import type { JobId } from '../job.ts';
import { printable } from '../printable.ts';
import { Secrets } from '../redact.ts';
import { HttpClient, type HttpClientOptions } from '../remote/http/http-client.ts';
import { SignIn, type SignInEvent } from '../remote/signin/sign-in.ts';
import { contentWriter } from '../remote/soap/answer/content.ts';
import { type CallEvent, SoapRemote } from '../remote/soap/client.ts';
import { Commits } from '../store/commits.ts';
import { isOnNetworkFileSystem } from '../store/database.ts';
import type { ResultSyncRow, WatchOrder } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';
import { DiskReserve } from '../system/disk-room.ts';
import { readBootId } from '../system/flush.ts';
import { spillDirectory } from './state.ts';
import type { Transfers } from './transfers.ts';

/** Name resolution, TCP and TLS together; a host that takes longer is as good as down. */
const CONNECT_MS = 10_000;
/** A small operation as a whole, in multiples of `service.timeoutSeconds`. */
const TOTAL_TIMEOUTS = 3;
const SMALL_ANSWER_BYTES = 32 * 1024 * 1024;
/**
 * How long a file has to look shorter, and to end inside a character, before it is acted upon (docs/servers.md 1.6).
 */
const STALE_MS = 5_000;
const TAIL_MS = 30_000;
/** A live file that has work left, and cannot do it, says so after this time. */
const STUCK_MS = 60_000;
/** Results of a job that are on their way at a time: while one is written, the next one is asked for. */
const RESULTS_AT_A_TIME = 8;
/** Of many names that are refused, so many stand in the log. */
const MOST_NAMED = 3;

/** Told what happens, for the metrics. */
export interface Observer {
  call(event: CallEvent): void;
  signIn(event: SignInEvent): void;
  appended(bytes: number): void;
  fetched(bytes: number, changed: boolean): void;
}

/** The way to the service. */
export interface Connection {
  readonly remote: Remote;
  readonly session: Session;
  /** All that went over it. */
  readonly secrets: Secrets;
  close(): Promise<void>;
}

export interface ConnectOptions {
  readonly observer?: Observer;
  readonly newClient?: (options: HttpClientOptions) => HttpClient;
  /** Those that are known already. */
  readonly secrets?: Secrets;
}

export async function connect(
  config: Config,
  log: Log,
  { observer, newClient = (options) => new HttpClient(options), secrets = new Secrets() }: ConnectOptions = {},
): Promise<Connection> {
  const { service, auth } = config;
  const { timeoutMs } = service;
  const http = newClient({
    limits: { connectMs: CONNECT_MS, headersMs: timeoutMs, idleMs: timeoutMs, totalMs: timeoutMs * TOTAL_TIMEOUTS },
    tls: await loadTls(config),
    ...(service.proxy === null ? {} : { proxy: service.proxy }),
  });
  const session = new SignIn({
    baseUrl: service.baseUrl,
    auth,
    http,
    secrets,
    onWarning: (message) => log.warn({}, message),
    onSignIn: (event) => {
      observer?.signIn(event);
      if (event.kind === 'signed-in') log.info({ tookMs: Math.round(event.tookMs) }, 'signed in');
      else log.debug({ code: event.error.code, err: event.error.message }, 'sign-in failed');
    },
  });
  const remote = new SoapRemote({
    namespace: service.namespace,
    url: service.fileTransferUrl,
    soapVersion: service.soapVersion,
    http,
    session,
    secrets,
    spillDirectory: spillDirectory(config),
    reserve: spillReserve(config),
    maxSmallAnswerBytes: SMALL_ANSWER_BYTES,
    isSessionFault: auth.sessionFaultPattern === null ? undefined : sessionFaults(auth.sessionFaultPattern, log),
    onCall: (event) => {
      observer?.call(event);
      const { operation, durationMs, outcome, bytes } = event;
      log.debug({ operation, durationMs: Math.round(durationMs), outcome, bytes }, 'call');
    },
  });
  return { remote, session, secrets, close: () => http.close() };
}

const spillReserve = (config: Config) => new DiskReserve(spillDirectory(config), config.mirror.minFreeBytes);

/** One line, however many they are. */
function refusalText(jobId: JobId, { count, fresh }: Refusals): string {
  const named = fresh.slice(0, MOST_NAMED).map(({ name, reason }) => `${name}: ${reason}`);
  if (count === 1) return `the result ${fresh[0]?.name} of job ${jobId} is refused: ${fresh[0]?.reason}`;
  return `${count} results of job ${jobId} are refused (agent status ${jobId}), among them ${named.join('; ')}`;
}

/** What the configuration has for faults that mean a lost session; what takes too long is said, and is none. */
function sessionFaults(pattern: string, log: Log): (words: string) => boolean {
  return (words) => {
    const matches = matchesInTime(pattern, words);
    const hint = 'write it without a repetition inside of another one';
    if (matches === undefined)
      log.warn({ code: 'config', hint }, 'auth.sessionFaultPattern takes too long for a fault');
    return matches === true;
  };
}

/** What the configuration says is to be followed. */
export function ordersOf(config: Config): WatchOrder[] {
  return config.watch.map(({ job, tasks, files, results, settleAfterMs }) => ({
    jobId: job,
    tasks,
    files,
    results: results && config.results.enabled,
    settleAfterMs,
    source: 'config',
  }));
}

/** The heart, put together. */
export interface Engine {
  readonly agent: Agent;
  /** Calls that wait for their turn. */
  callsWaiting(): number;
  /** What a complete pass needs, for commands that do one by themselves. */
  pass(signal: AbortSignal): CompletePassOptions;
  polls(jobId: JobId): JobPolls;
}

export interface EngineOptions {
  readonly config: Config;
  readonly store: Store;
  readonly transfers: Transfers;
  readonly remote: Remote;
  readonly log: Log;
  /** Follow this job alone, whatever else is watched. */
  readonly only?: JobId;
  readonly observer?: Observer;
  readonly onProgress?: (progress: ResultSyncRow) => void;
}

export function buildEngine({
  config,
  store,
  transfers,
  remote,
  log,
  only,
  observer,
  onProgress,
}: EngineOptions): Engine {
  const { mirror, poll, service, results } = config;
  const calls = new Calls(service);
  const patient = new QueuedRemote(remote, calls, 'patient');
  const { now } = systemClock;
  const commits = new Commits({ transaction: (work) => store.transaction(work), timer: systemClock.timer });
  const onNetwork = isOnNetworkFileSystem(mirror.directory);
  const { monotonic } = systemClock;
  const sightings = { now: monotonic, staleMs: STALE_MS, tailMs: TAIL_MS, stuckMs: STUCK_MS };
  const rawBytes = {
    remote: patient,
    newContent: () => contentWriter({ directory: spillDirectory(config), reserve: spillReserve(config) }),
    now: monotonic,
  };
  const context: PollContext = {
    store,
    commit: (write, withinMs) => commits.commit(write, withinMs),
    encoding: new TextEncoding(service.contentEncoding, store.habits),
    newMemory: () => ({
      witnesses: new Witnesses(sightings),
      rawBytes: new RawBytes(rawBytes),
      backlogs: new Backlogs(),
      quietFiles: new QuietFiles(mirror.directory, onNetwork),
    }),
    batchLimit: new BatchLimit(store.habits),
    now,
    liveFiles: {
      mirrors: new OpenMirrors({ directory: mirror.directory, onNetwork }),
      overlapBytes: poll.overlapBytes,
      keepGenerations: mirror.keepGenerations,
      checkpoint: () => {},
      commit: (row) => store.transaction(() => store.liveFiles.save(row)),
      mark: (row) => store.quickTransaction(() => store.liveFiles.save(row)),
      // Of files of other hosts, this one's memory is not the truth.
      bootId: onNetwork || isOnNetworkFileSystem(store.directory) ? null : readBootId(),
    },
  };
  const synced = new Results({
    store,
    mirrorDirectory: mirror.directory,
    onNetwork,
    minFreeBytes: mirror.minFreeBytes,
    rules: results,
    clock: systemClock,
    parallel: RESULTS_AT_A_TIME,
    direct: transfers.directOf(config),
    onProgress,
    onFetched: (jobId, name, bytes, changed) => {
      observer?.fetched(bytes, changed);
      if (changed) log.debug({ jobId, file: printable(name), bytes }, `result ${printable(name)} of job ${jobId}`);
    },
    onRefused: (jobId, refusals) => log.warn({ jobId, refused: refusals.count }, refusalText(jobId, refusals)),
    onFallback: (jobId, reason) =>
      log.warn({ jobId, err: reason }, `results of job ${jobId} come by SOAP, not directly: ${reason}`),
  });
  const shared = { mirrorDirectory: mirror.directory, clock: systemClock };
  const agent = new Agent({
    ...shared,
    commits,
    remote,
    calls,
    poll: context,
    results: synced,
    intervals: poll,
    resultsIntervalMs: results.intervalMs,
    log,
    random: Math.random,
    only,
    onAppended: observer && ((bytes) => observer.appended(bytes)),
  });
  return {
    agent,
    callsWaiting: () => calls.waiting,
    polls: (jobId) => new JobPolls(jobId, context),
    pass: (signal) => ({
      ...shared,
      store,
      results: synced,
      remote: new QueuedRemote(remote, calls, 'live'),
      pauseMs: poll.minIntervalMs,
      signal,
    }),
  };
}
