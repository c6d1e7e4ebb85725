/** The metrics (docs/monitoring.md). No label names a job or a file: the number of series stays the same. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { FleetMember } from '../fleet/member.ts';
import { MISMATCH_KINDS } from '../mismatch.ts';
import type { Store } from '../store/store.ts';
import type { AgentHealth } from './health.ts';
import type { Observer } from './observer.ts';

export type StoreTotals = ReturnType<Store['totals']['read']>;

/** What the metrics read of an agent. */
export interface MeasuredAgent {
  readonly version: string;
  readonly store: { readonly totals: { readonly read: () => StoreTotals } };
  readonly health: Pick<AgentHealth, 'turnAgeMs'>;
  readonly observer: Observer;
  readonly callsWaiting: () => number;
  readonly logLinesLost: () => number;
  readonly fleetMember: () => { readonly numbers: FleetNumbers } | undefined;
}

interface MetricsOptions extends MeasuredAgent {
  readonly freeBytes: () => Promise<Readonly<Record<string, number>>>;
  readonly now: () => number;
}

export type FleetNumbers = FleetMember['numbers'];

/** In seconds. */
const CALL_BUCKETS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 120, 600];
const EVENT_LOOP_PRECISION_MS = 50;

export class Metrics {
  readonly #registry = new Registry();
  readonly #options: MetricsOptions;
  #withDefaults = false;
  /** Shared by all gauges of one response: computing them takes a while for many jobs. */
  #totals: StoreTotals | undefined;

  constructor(options: MetricsOptions) {
    this.#options = options;
    this.#count(options.observer);
    this.#addProcessGauges();
    this.#addStoreGauges();
    const member = options.fleetMember();
    if (member !== undefined) this.#addFleet(() => member.numbers);
  }

  #count(observer: Observer): void {
    const registers = [this.#registry];
    const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
      new Counter({ name: `jobtail_${name}`, help, labelNames, registers });
    const calls = counter('calls_total', 'Calls to the file-transfer service', 'operation', 'outcome');
    const callBytes = counter('call_bytes_total', 'Bytes of the answers to calls', 'operation');
    const name = 'jobtail_call_duration_seconds';
    const labels = { labelNames: ['operation'], buckets: CALL_BUCKETS };
    const callSeconds = new Histogram({ name, help: 'How long calls took', ...labels, registers });
    observer.on('call', ({ operation, outcome, durationMs, bytes }) => {
      calls.inc({ operation, outcome });
      callSeconds.observe({ operation }, durationMs / 1000);
      callBytes.inc({ operation }, bytes);
    });
    const work = counter('server_work_seconds_total', 'Time to the first byte less the round trip');
    const pauses = counter('server_pauses_total', 'Pauses of all calls that the server requested');
    observer.on('answered', (workMs, isPause) => {
      work.inc(workMs / 1000);
      pauses.inc(Number(isPause));
    });
    const signIns = counter('sign_ins_total', 'Sign-ins', 'outcome');
    signIns.inc({ outcome: 'ok' }, 0);
    observer.on('signIn', (event) => signIns.inc({ outcome: event.kind === 'failed' ? event.error.code : 'ok' }));
    const mirrored = counter('mirrored_bytes_total', 'Bytes appended to live mirrors');
    observer.on('appended', (bytes) => mirrored.inc(bytes));
    const results = counter('results_fetched_total', 'Result files fetched', 'changed');
    const downloads = counter('result_downloads_total', 'Downloads of results: first, changed or same', 'kind');
    const resultBytes = counter('results_fetched_bytes_total', 'Bytes of result files fetched');
    observer.on('fetched', (bytes, kind) => {
      downloads.inc({ kind });
      results.inc({ changed: String(kind !== 'same') });
      resultBytes.inc(bytes);
    });
    const tasksFound = counter('tasks_found_total', 'Tasks found that no request names', 'by');
    observer.on('tasksFound', (tasks, by) => tasksFound.inc({ by }, tasks));
    const mismatches = counter('mismatches_total', 'Remote files truncated or rewritten, mirrors repaired', 'kind');
    for (const kind of MISMATCH_KINDS) mismatches.inc({ kind }, 0);
    observer.on('mismatch', (kind) => mismatches.inc({ kind }));
    const jobStates = counter('job_service_requests_total', 'Requests to the job service', 'outcome');
    observer.on('jobStatesRead', (outcome) => jobStates.inc({ outcome }));
    const reloads = counter('reloads_total', 'Changed configurations', 'outcome');
    for (const outcome of ['taken', 'refused']) reloads.inc({ outcome }, 0);
    observer.on('reloaded', (outcome) => reloads.inc({ outcome }));
  }

  async text(): Promise<string> {
    // These metrics cost time continuously, so they start with the first request.
    if (!this.#withDefaults) {
      collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
      // Gauges with names of counters, which promtool refuses; the gauges without `_total` have the same numbers by type.
      for (const kind of ['handles', 'requests', 'resources'])
        this.#registry.removeSingleMetric(`nodejs_active_${kind}_total`);
      // They count from now on; what the process used before is missing.
      const { user, system } = process.cpuUsage();
      for (const [name, microseconds] of Object.entries({ user_: user, system_: system, '': user + system })) {
        const used = this.#registry.getSingleMetric(`process_cpu_${name}seconds_total`);
        if (used instanceof Counter) used.inc(microseconds / 1e6);
      }
      this.#withDefaults = true;
    }
    this.#totals = this.#options.store.totals.read();
    return this.#registry.metrics();
  }

  #addProcessGauges(): void {
    const { version, callsWaiting, health, logLinesLost, freeBytes } = this.#options;
    const program = { version, node: process.version };
    const names = { name: 'jobtail_build_info', help: 'The program; always 1', labelNames: Object.keys(program) };
    new Gauge({ ...names, registers: [this.#registry] }).set(program, 1);
    this.#gauge('calls_waiting', 'Calls that wait for their turn', callsWaiting);
    this.#gauge('scheduler_turn_age_seconds', 'Since the scheduler last went round', () => health.turnAgeMs / 1000);
    this.#gauge(
      'log_lines_lost',
      'Log lines dropped since the start, because the reader of the log was too slow',
      logLinesLost,
    );
    this.#gauge('disk_free_bytes', 'Free bytes where a directory lies', freeBytes, 'directory');
  }

  #addStoreGauges(): void {
    const add = (name: string, help: string, value: (found: StoreTotals) => number) =>
      this.#gauge(name, help, () => this.#totals && value(this.#totals));
    const age = (name: string, help: string, at: (found: StoreTotals) => number | null) =>
      this.#gauge(name, help, () => {
        const since = this.#totals && at(this.#totals);
        return since == null ? undefined : Math.max(0, this.#options.now() - since) / 1000;
      });
    this.#gauge('jobs', 'Jobs by state', () => this.#totals?.jobs, 'state');
    this.#gauge('results', 'Result files by state', () => this.#totals?.results, 'state');
    add('jobs_failing', 'Watched jobs whose last poll or sync failed', ({ failingJobs }) => failingJobs);
    add('jobs_stalled', 'Running jobs without growth for stallAfterMinutes', ({ stalledJobs }) => stalledJobs);
    add('notifications_waiting', 'Notifications to deliver', ({ deliveriesWaiting }) => deliveriesWaiting);
    add('notifications_given_up', 'Notifications given up', ({ deliveriesGivenUp }) => deliveriesGivenUp);
    add('live_files', 'Live files of watched jobs', ({ liveFiles }) => liveFiles);
    add('live_files_failing', 'Live files of watched jobs that fail by themselves', ({ failingFiles }) => failingFiles);
    add('former_generations', 'Rewritten or truncated remote files so far', ({ generations }) => generations);
    add('refused_entries', 'Entries of responses that were not requested', ({ refusedEntries }) => refusedEntries);
    age('growth_age_seconds', 'Since any watched job last grew', ({ grownAt }) => grownAt);
    age('oldest_poll_age_seconds', 'Since the last poll of the job that waits longest', (found) => found.oldestPollAt);
  }

  #addFleet(numbers: () => FleetNumbers): void {
    const add = (name: string, help: string, value: (found: FleetNumbers) => number) =>
      this.#gauge(`fleet_${name}`, help, () => value(numbers()));
    const total = (name: string, help: string, value: (found: FleetNumbers) => number) =>
      this.#total(`fleet_${name}`, help, () => value(numbers()));
    this.#gauge('fleet_jobs', 'Jobs of the fleet by their owner', () => numbers().jobs, 'owner');
    add('database_up', 'Whether the database of the fleet answers', ({ isUp }) => Number(isUp));
    add('not_followed_jobs', 'Jobs that this agent owns and does not follow', ({ notFollowed }) => notFollowed);
    add('agents', 'Agents of the fleet that take jobs', ({ agents }) => agents);
    add('lease_age_seconds', 'Since the lease of any job was prolonged', ({ leaseAgeSeconds }) => leaseAgeSeconds);
    add('waiting_seconds', 'How long a job waits for an owner', ({ waitingSeconds }) => waitingSeconds);
    total('takeovers_total', 'Jobs taken over from agents that were silent', ({ takeovers }) => takeovers);
    total('jobs_lost_total', 'Jobs that other agents took over', ({ lost }) => lost);
    total('refused_writes_total', 'Writes refused because the lease was over', ({ refusedWrites }) => refusedWrites);
  }

  /** A counter whose value is counted elsewhere. */
  #total(name: string, help: string, value: () => number): void {
    new Counter({
      name: `jobtail_${name}`,
      help,
      registers: [this.#registry],
      collect() {
        this.reset();
        this.inc(value());
      },
    });
  }

  /** A gauge that is absent while its value is undefined; of numbers by name, the name is in `label`. */
  #gauge(name: string, help: string, value: () => MetricValue | Promise<MetricValue>, label?: string): void {
    const labelNames = label === undefined ? [] : [label];
    const collect = async () => {
      const found = await value();
      // Not 0, which a reset would show.
      if (label === undefined) gauge.remove();
      else gauge.reset();
      if (typeof found === 'number') gauge.set(found);
      else for (const [of, number] of Object.entries(found ?? {})) gauge.set({ [label ?? '']: of }, number);
    };
    const gauge: Gauge = new Gauge({ name: `jobtail_${name}`, help, labelNames, registers: [this.#registry], collect });
  }
}

type MetricValue = number | Readonly<Record<string, number>> | undefined;
