/** The connection to the service for one configuration: HTTP, the sign-in, and the service client. */
import type { Log } from '../agent/ports/host.ts';
import type { CapabilityStore, JobService, Remote, Session } from '../agent/ports/server.ts';
import { ServerShare } from '../agent/server-share.ts';
import { ServiceClock } from '../agent/service-clock.ts';
import { matchesInTime } from '../config/auth-schema.ts';
import { type Config, serviceAddress } from '../config/config.ts';
import { loadTls } from '../config/load.ts';
import { keepSecrets } from '../config/secrets.ts';
import type { JobInformation } from '../job-information.ts';
import { Secrets } from '../redact.ts';
import type { SpillPlace } from '../remote/content/response-texts.ts';
import { Compression } from '../remote/http/compression.ts';
import { HttpClient, type HttpClientOptions, type HttpWay, type ResponseTiming } from '../remote/http/http-client.ts';
import { proxyUserOf } from '../remote/http/ways.ts';
import { RestCapabilities } from '../remote/rest/capabilities.ts';
import { RestJobService, RestRemote } from '../remote/rest/client.ts';
import type { CallEvent, ServiceCallsOptions } from '../remote/session-calls.ts';
import { SignIn } from '../remote/signin/sign-in.ts';
import { SoapJobService, SoapRemote } from '../remote/soap/client.ts';
import { inSlices } from '../slices.ts';
import { systemClock } from '../system/clock.ts';
import type { Observer } from './observer.ts';
import { spillDirectory } from './own-state.ts';

/** Name resolution, TCP and TLS together. */
const CONNECT_MS = 10_000;
/** Total time of a small operation, in multiples of `service.timeoutSeconds`. */
const TOTAL_TIMEOUTS = 3;
/** A longer text goes to a temporary file. */
const TEXT_IN_MEMORY_BYTES = 1024 * 1024;

export interface Connection extends Services {
  readonly session: Session;
  readonly share: ServerShare;
  readonly serviceClock: ServiceClock;
  readonly secrets: Secrets;
  close(): Promise<void>;
}

interface ConnectOptions {
  readonly observer?: Observer;
  readonly newClient?: (options: HttpClientOptions) => HttpClient;
  readonly secrets?: Secrets;
  readonly capabilities?: CapabilityStore;
  /** Whether this process tries a failed sign-in again. */
  readonly signsInAgain?: boolean;
}

export async function connect(
  config: Config,
  log: Log,
  {
    observer,
    newClient = (options) => new HttpClient(options),
    secrets = new Secrets(),
    capabilities = passingCapabilities(),
    signsInAgain = false,
  }: ConnectOptions = {},
): Promise<Connection> {
  const { service, auth } = config;
  const { timeoutMs } = service;
  const onWarning = (message: string) => log.warn({ scope: 'the configuration', err: message }, 'secret not protected');
  // What cannot be read, its reader reports.
  await keepSecrets(config, secrets, {
    env: process.env,
    signal: new AbortController().signal,
    withPrograms: false,
    onWarning,
  });
  const share = new ServerShare({
    requestsPerMinute: service.requestsPerMinute,
    monotonic: systemClock.monotonic,
    signedInAt: () => session.signedInAt,
  });
  const serviceClock = new ServiceClock({ clock: systemClock, capabilities, log });
  const onResponse = (timing: ResponseTiming) => {
    serviceClock.responded(timing.sentAt);
    const pauseMs = share.responded(timing);
    observer?.emit('answered', timing.workMs, pauseMs !== undefined);
    if (pauseMs === undefined) return;
    log.warn({ status: timing.status, pauseMs: Math.round(pauseMs) }, 'all calls paused by the service');
  };
  const http = newClient({
    onResponse,
    compression: service.compression === 'auto' ? new Compression() : undefined,
    limits: { connectMs: CONNECT_MS, headersMs: timeoutMs, idleMs: timeoutMs, totalMs: timeoutMs * TOTAL_TIMEOUTS },
    ...(await wayTo(config)),
  });
  const session = new SignIn({
    baseUrl: service.baseUrl,
    auth,
    http,
    secrets,
    env: process.env,
    nowMs: systemClock.monotonic,
    random: Math.random,
    signsInAgain,
    onWarning: (message) => log.warn({ scope: 'the service', err: message }, 'secret not protected'),
    onSignIn: (event) => {
      observer?.emit('signIn', event);
      if (event.kind === 'signed-in') log.info({ tookMs: Math.round(event.tookMs) }, 'signed in');
      else log.debug({ code: event.error.code, err: event.error.message }, 'sign-in failed');
    },
  });
  const calls = {
    http,
    session,
    secrets,
    isSessionFault: auth.sessionFaultPattern === null ? () => false : sessionFaults(auth.sessionFaultPattern, log),
    untilAllowed: (signal: AbortSignal) => share.pauseOver(systemClock, signal),
    onCall: (event: CallEvent) => {
      observer?.emit('call', event);
      const { operation, durationMs, outcome, bytes } = event;
      log.debug({ operation, durationMs: Math.round(durationMs), outcome, bytes }, 'call');
    },
  };
  const onChange = (what: string) => log.info({ what }, 'server capabilities changed');
  const { remote, jobService } = servicesOver(config, calls, capabilities, onChange);
  const reported = jobService && hidingSecrets(jobService, secrets);
  return { remote, jobService: reported, session, share, serviceClock, secrets, close: () => http.close() };
}

/** The HTTP options for the services of a configuration. @throws JobtailError if a certificate cannot be read */
export async function wayTo(config: Config): Promise<HttpWay> {
  const { proxy } = config.service;
  const tls = await loadTls(config);
  return proxy === null ? { tls } : { tls, proxy, ...(await proxyUserOf(config.service.proxyUserFile)) };
}

/** Capabilities that this process detects for itself; stored ones are read and never changed. */
export function passingCapabilities(kept?: CapabilityStore): CapabilityStore {
  const found = new Map<string, string>();
  return { get: (name) => found.get(name) ?? kept?.get(name), set: (name, value) => void found.set(name, value) };
}

function spillPlace(config: Config): SpillPlace {
  return { directory: spillDirectory(config), memoryBytes: TEXT_IN_MEMORY_BYTES };
}

/** Matches the configured faults of a lost session; a pattern that takes too long is reported, and does not match. */
function sessionFaults(pattern: string, log: Log): (words: string) => boolean {
  return (words) => {
    const matches = matchesInTime(pattern, words);
    const hint = 'write it without a repetition inside of another one';
    if (matches === undefined)
      log.warn({ code: 'config', hint }, 'auth.sessionFaultPattern takes too long for a fault');
    return matches === true;
  };
}

const SMALL_RESPONSE_BYTES = 32 * 1024 * 1024;

export interface Services {
  readonly remote: Remote;
  readonly jobService: JobService | null;
}

function servicesOver(
  config: Config,
  calls: ServiceCallsOptions,
  kept: CapabilityStore,
  onChange: (what: string) => void,
): Services {
  const { service } = config;
  const ofFiles = { ...calls, spill: spillPlace(config), maxSmallResponseBytes: SMALL_RESPONSE_BYTES };
  if (service.protocol === 'soap') {
    const { namespace, soapVersion, fileTransferUrl, jobsUrl } = service;
    return {
      remote: new SoapRemote({ ...ofFiles, namespace, soapVersion, url: fileTransferUrl }),
      jobService: jobsUrl === null ? null : new SoapJobService({ ...calls, namespace, soapVersion, url: jobsUrl }),
    };
  }
  const url = serviceAddress(service);
  const capabilities = new RestCapabilities({ kept, onChange, now: systemClock.monotonic });
  return {
    remote: new RestRemote({ ...ofFiles, url, capabilities }),
    jobService: new RestJobService({ ...calls, url, capabilities }),
  };
}

/** Removes secrets from the reports of a job service, which may quote them. */
export function hidingSecrets(service: JobService, secrets: Secrets): JobService {
  return {
    getJob: async (jobId, signal) => hidden(await service.getJob(jobId, signal), secrets),
    listJobs: async (signal) => {
      const jobs: JobInformation[] = [];
      for await (const job of inSlices(await service.listJobs(signal))) jobs.push(hidden(job, secrets));
      return jobs;
    },
  };
}

/** In all texts but the ids, which are numbers. */
function hidden(job: JobInformation, secrets: Secrets): JobInformation {
  const hide = (key: string, value: unknown): unknown =>
    typeof value === 'string' && key !== 'id' ? secrets.hide(value) : value;
  return JSON.parse(JSON.stringify(job, hide)) as JobInformation;
}
