/** The jobs of the user that a rule selects, and the order in which they are taken. */
import { compareIds, type JobId, LIVE_FILE_NAMES } from '../job.ts';
import { isLater, type JobInformation, type JobTime, latestMsOf, phaseOf } from '../job-information.ts';
import { inSlices } from '../slices.ts';
import type { WatchMineRow } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { KnownJobs } from './ownership.ts';
import { patterned } from './patterns.ts';
import type { Log } from './ports/host.ts';

interface MineOptions {
  readonly context: { readonly store: Store; readonly clock: Clock; readonly log: Log };
  readonly knownJobs: KnownJobs;
  readonly resultsOfMine: boolean;
  /** What the list before showed; undefined without one. */
  readonly before: SeenJobs | undefined;
}

/** Takes jobs up to the maximum of the rule. Returns how many it took, and how many wait. */
export async function takeMine(
  listed: readonly JobInformation[],
  { context, knownJobs, resultsOfMine: results, before }: MineOptions,
): Promise<{ readonly taken: number; readonly waiting: number }> {
  const { store, clock, log } = context;
  const rule = store.watchMine.inForce();
  if (rule === undefined) return { taken: 0, waiting: 0 };
  const known = await knownJobs.ids();
  const fresh = listed.filter(({ id }) => !known.has(id));
  const fitting = await chooseMine(fresh, rule, clock.now());
  const request = { tasks: null, files: LIVE_FILE_NAMES, results, settleAfterMs: null, source: 'mine' } as const;
  const requests = fitting.map((job) => ({ ...request, jobId: job.id, seenState: seenStateOf(job, before) }));
  const taken = await knownJobs.follow(requests, rule.maxJobs);
  const waiting = fitting.length - taken;
  if (taken === 0) return { taken, waiting };
  log.info({ taken, waiting }, 'jobs of the user followed');
  return { taken, waiting };
}

/** The listed jobs that were never requested, those that the rule selects, and those that it takes now. */
export async function choiceOf(listed: readonly JobInformation[], rule: WatchMineRow, store: Store, now: number) {
  const known = store.jobs.known();
  const fresh = listed.filter(({ id }) => !known.has(id));
  const fitting = await chooseMine(fresh, rule, now);
  const taken = fitting.slice(0, Math.max(0, rule.maxJobs - store.jobs.followedByRule()));
  return { fresh, fitting, taken };
}

/** The jobs that a rule selects, in the order in which they are taken. `now` is in milliseconds since 1970. */
export async function chooseMine(
  jobs: readonly JobInformation[],
  rule: WatchMineRow,
  now: number,
): Promise<readonly JobInformation[]> {
  const isIncluded = patterned(rule.include);
  const isExcluded = patterned(rule.exclude);
  const chosen: JobInformation[] = [];
  for await (const job of inSlices(jobs)) {
    if (!isSubmitted(job) || !isRecent(job, rule, now)) continue;
    const name = asPath(job.name);
    if (isIncluded(name) && !isExcluded(name)) chosen.push(job);
  }
  return byNeed(chosen);
}

/** The middleware lists jobs that were created and never submitted for ever (docs/dev/rest.md 3.2): they have no files. */
const isSubmitted = ({ state }: JobInformation) => state !== 'Configuring';

const RANKS = ['Running', 'Queued', 'Submitted'];

/** Jobs in the order in which they are taken and first polled: running, waiting, ended; of each, the newest first. */
export function byNeed(jobs: readonly JobInformation[]): readonly JobInformation[] {
  const ranked = jobs.map((job) => ({ job, rank: rankOf(job), endedAt: endOf(job) ?? 0 }));
  return ranked
    .sort((a, b) => a.rank - b.rank || b.endedAt - a.endedAt || compareIds(b.job.id, a.job.id))
    .map(({ job }) => job);
}

function rankOf({ state }: JobInformation): number {
  const rank = RANKS.indexOf(state ?? '');
  if (rank >= 0) return rank;
  return phaseOf(state) === 'over' ? RANKS.length + 1 : RANKS.length;
}

/** Whether a job is young enough: not over, or ended after the rule began or within the maximum age. */
function isRecent(job: JobInformation, { maxAgeMs, since }: WatchMineRow, now: number): boolean {
  if (phaseOf(job.state) !== 'over') return true;
  const endedAt = endOf(job);
  return endedAt !== undefined && (endedAt >= since || now - endedAt <= maxAgeMs);
}

/** When a job ended at the latest, in milliseconds since 1970: without a reported end, its last known time. */
function endOf({ endTime, startTime, submitTime, creationTime }: JobInformation): number | undefined {
  const time = endTime ?? startTime ?? submitTime ?? creationTime;
  return time === null ? undefined : latestMsOf(time);
}

/** A name as a path, because the patterns match paths only. */
const asPath = (name: string | null) => (name ?? '').replace(/^[./]+/, '') || '_';

/** What a list of all jobs shows of those that the rule takes from the next list. */
export interface SeenJobs {
  readonly active: ReadonlyMap<JobId, string>;
  /** The latest submission: a later one is of a job that came after the list. No clock of this machine is asked. */
  readonly submitted: JobTime | null;
}

export async function seenIn(listed: readonly JobInformation[]): Promise<SeenJobs> {
  const active = new Map<JobId, string>();
  let submitted: JobTime | null = null;
  for await (const { id, state, submitTime } of inSlices(listed)) {
    if (state !== null && phaseOf(state) === 'active') active.set(id, state);
    if (submitTime !== null && (submitted === null || isLater(submitTime, submitted))) submitted = submitTime;
  }
  return { active, submitted };
}

/** The job state in which a job is known to have been before it is taken, if the list before shows that it was active. */
export function seenStateOf({ id, submitTime }: JobInformation, before: SeenJobs | undefined): string | null {
  if (before === undefined) return null;
  const isNew = submitTime !== null && before.submitted !== null && isLater(submitTime, before.submitted);
  return before.active.get(id) ?? (isNew ? 'Submitted' : null);
}
