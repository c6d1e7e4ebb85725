/** The jobs that the configuration names, and those of the user that its rule selects. */
import { type JobId, LIVE_FILE_NAMES } from '../../job.ts';
import { type JobInformation, latestMsOf, phaseOf } from '../../job-information.ts';
import { inSlices } from '../../slices.ts';
import type { WatchMineRow, WatchMineRule, WatchOrder } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';
import type { JobRegister } from '../ownership.ts';
import { patterned } from '../patterns.ts';
import type { Log } from '../ports.ts';

export interface ConfiguredJobsOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
}

/** Brings the jobs of the configuration into the store; a job that left it is brought to its end. */
export function takeConfigured(configured: readonly WatchOrder[], { store, clock, log }: ConfiguredJobsOptions): void {
  const wanted = new Set(configured.map((order) => order.jobId));
  store.transaction(() => {
    for (const order of configured) {
      const { jobId } = order;
      const row = store.jobs.get(jobId);
      const overruled = row?.state === 'settled' || (row?.source === 'command' && row.state !== 'watched');
      if (!overruled) store.jobs.watch(order, clock.now());
      else log.info({ jobId, state: row.state }, 'configured job not followed');
    }
    for (const { jobId, source, state } of store.jobs.all()) {
      if (source === 'config' && state === 'watched' && !wanted.has(jobId)) store.jobs.setState(jobId, 'ending');
    }
  });
}

/**
 * Brings the rule of the configuration into the store, or takes it away; one that stays the same goes on as it began.
 */
export function takeRule(rule: WatchMineRule | null, { store, clock }: ConfiguredJobsOptions): void {
  store.transaction(() => {
    const before = store.watchMine.of('config');
    if (rule === null) store.watchMine.remove('config');
    else store.watchMine.save({ ...rule, source: 'config', since: before?.since ?? clock.now() });
  });
}

export interface MineOptions {
  readonly store: Store;
  readonly register: JobRegister;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether the results of jobs are followed. */
  readonly results: boolean;
  /** All jobs of the user. */
  readonly listed: readonly JobInformation[];
}

/** Takes as many jobs as the rule allows at a time; how many it took, and how many it would take if it might. */
export async function takeMine(options: MineOptions): Promise<{ readonly taken: number; readonly waiting: number }> {
  const { store, register, clock, log, results, listed } = options;
  const rule = store.watchMine.inForce();
  if (rule === undefined) return { taken: 0, waiting: 0 };
  const known = await register.known();
  const fitting = await fittingOf(listed, { known, rule, now: clock.now() });
  const order = { tasks: null, files: LIVE_FILE_NAMES, results, settleAfterMs: null, source: 'mine' } as const;
  const orders = fitting.map(({ id }) => ({ ...order, jobId: id }));
  const taken = await register.follow(orders, rule.mostJobs);
  const waiting = fitting.length - taken;
  if (taken === 0) return { taken, waiting };
  log.info({ taken, waiting }, 'jobs of the user followed');
  return { taken, waiting };
}

/**
 * Of the listed jobs, those that were never ordered, those of them that the rule is for, and as many as may be
 * followed.
 */
export async function choiceOf(listed: readonly JobInformation[], rule: WatchMineRow, store: Store, now: number) {
  const known = store.jobs.known();
  const fresh = listed.filter(({ id }) => !known.has(id));
  const fitting = await fittingOf(fresh, { known, rule, now });
  const taken = fitting.slice(0, Math.max(0, rule.mostJobs - store.jobs.followedByRule()));
  return { fresh, fitting, taken };
}

interface Fitting {
  readonly known: ReadonlySet<JobId>;
  readonly rule: WatchMineRow;
  readonly now: number;
}

/** Of the listed jobs, those that were never ordered and that the rule is for. */
function fittingOf(listed: readonly JobInformation[], { known, rule, now }: Fitting) {
  return chooseMine(
    listed.filter(({ id }) => !known.has(id)),
    rule,
    now,
  );
}

/** Running jobs first, then those that will run, then ended ones, the youngest first. */
const RANKS = ['Running', 'Queued', 'Submitted', 'Configuring'];

/** The jobs that a rule is for, in the order in which they are to be taken. `now` is in milliseconds since 1970. */
export async function chooseMine(
  jobs: readonly JobInformation[],
  rule: WatchMineRow,
  now: number,
): Promise<readonly JobInformation[]> {
  const isIncluded = patterned(rule.include);
  const isExcluded = patterned(rule.exclude);
  const chosen: { readonly job: JobInformation; readonly rank: number; readonly endedAt: number }[] = [];
  for await (const job of inSlices(jobs)) {
    if (!isRecent(job, rule, now)) continue;
    const name = asPath(job.name);
    if (isIncluded(name) && !isExcluded(name)) chosen.push({ job, rank: rankOf(job), endedAt: endOf(job) ?? 0 });
  }
  return chosen.sort((a, b) => a.rank - b.rank || b.endedAt - a.endedAt).map(({ job }) => job);
}

function rankOf({ state }: JobInformation): number {
  const rank = RANKS.indexOf(state ?? '');
  if (rank >= 0) return rank;
  return phaseOf(state) === 'over' ? RANKS.length + 1 : RANKS.length;
}

/** A job that is over is too old if it ended before the rule began, and longer ago than the rule allows. */
function isRecent(job: JobInformation, { maxAgeMs, since }: WatchMineRow, now: number): boolean {
  if (phaseOf(job.state) !== 'over') return true;
  const endedAt = endOf(job);
  return endedAt !== undefined && (endedAt >= since || now - endedAt <= maxAgeMs);
}

/** When a job ended at the latest, in milliseconds since 1970; without a reported time, when it was last seen. */
function endOf({ endTime, startTime, submitTime, creationTime }: JobInformation): number | undefined {
  const time = endTime ?? startTime ?? submitTime ?? creationTime;
  return time === null ? undefined : latestMsOf(time);
}

/** A name in the form of a path: patterns match only these. */
const asPath = (name: string | null) => (name ?? '').replace(/^[./]+/, '') || '_';
