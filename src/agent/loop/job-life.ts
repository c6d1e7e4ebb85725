/**
 * The life of a job in this agent: what each event leads to in each stage. Only `NEXT` changes the stage of a job, so every
 * end of a job is in this file.
 *
 *   stage           the job is                                                              in the state as
 *   -----------------------------------------------------------------------------------------------------------
 *   unclear         followed; its job state is not known                                    watched
 *   active          followed; reported as not over                                          watched
 *   stored          followed; reported as over before this start, maybe in an earlier run   watched
 *   over            followed; reported as over: its files may be flushed late               watched
 *   deleted         at its end: its files stay as they are                                  watched
 *   ending          unwatched: its last pass runs, or is retried                            ending
 *   settled, ended  not followed: a pass runs only if a command requests it                 settled, ended
 *
 *   row  event                                    leads to   why
 *   -----------------------------------------------------------------------------------------------------------
 *   0    any that changes nothing in its stage
 *   1    watched: command, configuration, rule    unclear    it is followed from now on: polled, searched, synced
 *   2    watched again, if not deleted                       the request may be another one
 *   3    restart, or watched: last reported active  active   it is followed where the last report left it
 *   4    restart, or watched: last reported over  stored     it may have been started again since
 *   5    restart, or watched: deleted             deleted    its pass needs no call
 *   6    reported as active                       active     bytes will come; a settled job runs again
 *   7    reported as over; in another run         over       the last bytes are fetched, late ones are waited for
 *   8    reported as over, as it is stored;       over       the stored report is still true, or the last one
 *        report refused
 *   9    reported without a known state           unclear    it proves nothing
 *   10   reported or found as deleted             deleted    all work ends: older copies must not replace its files
 *   11   poll failed or refused, search failed               it may have missed bytes: the quiet time starts anew
 *   12   quiet poll; refused poll of a job that is over      counts for the end, which what is refused delays (row 14)
 *   13   growth, also of tasks; pass unequal                 more bytes may come: all times start anew
 *   14   end delayed                                         what fails may still come: the end waits for `FAILING_MS`
 *   15   end due                                             the last pass runs
 *   16   pass equal, or given up                  settled    nothing more came, or passes were refused for too long
 *   17   pass equal or unequal, or given up       ended      the last pass of an unwatched job is done, or given up
 *   18   pass refused                                        the service responds, but refuses this: as row 14, and counted
 *   19   unwatched                                ending     its last pass runs
 *   20   left: unwatched at once, forgotten, or   ended      all work ends
 *        no command waits for it any more
 *
 * Times are milliseconds of the monotonic clock, and are passed in. What fails and may still come (a file, a listing, a
 * pass) delays the end once: neither a failed poll nor an outage starts that time anew.
 */
import { EXIT, type JobtailError } from '../../errors.ts';
import { isOtherRun, type JobInformation, type JobTime, phaseOf } from '../../job-information.ts';
import type { JobInformationRow, JobRow } from '../../store/rows.ts';
import { DELETED } from '../pass/deleted-jobs.ts';
import type { DueRun } from '../schedule/due-runs.ts';

export type Stage = 'unclear' | 'active' | 'stored' | 'over' | 'deleted' | 'ending' | 'settled' | 'ended';

export interface Life {
  readonly stage: Stage;
  /** A job whose state is not known ends after so much quiet time; null: never. */
  readonly settleAfterMs: number | null;
  readonly reportedAt: number;
  /** Start of the time in which no poll failed or brought bytes, and the job was over if it is. */
  readonly quietSince: number;
  /** Polls and searches that began in that time. */
  readonly quietPolls: number;
  /** Start of the time in which only failures delay the end. */
  readonly delayedSince: number | null;
  readonly refusedPasses: number;
}

export const NOT_FOLLOWED: Life = {
  stage: 'ended',
  settleAfterMs: null,
  reportedAt: 0,
  quietSince: 0,
  quietPolls: 0,
  delayedSince: null,
  refusedPasses: 0,
};

const TIMES = {
  same: () => ({}),
  reported: (_: Life, now: number) => ({ reportedAt: now }),
  'quiet poll': ({ quietPolls }: Life) => ({ quietPolls: quietPolls + 1 }),
  'quiet anew': (_: Life, now: number) => ({ quietSince: now, quietPolls: 0 }),
  'all anew': (_: Life, now: number) => ({ quietSince: now, quietPolls: 0, delayedSince: null, refusedPasses: 0 }),
  delayed: ({ delayedSince }: Life, now: number) => ({ delayedSince: delayedSince ?? now }),
  refused: ({ delayedSince, refusedPasses }: Life, now: number) => {
    return { delayedSince: delayedSince ?? now, refusedPasses: refusedPasses + 1 };
  },
} as const satisfies Record<string, (life: Life, now: number) => Partial<Life>>;

interface LifeRow {
  /** The same stage if omitted. */
  readonly next?: Stage;
  readonly times?: keyof typeof TIMES;
  readonly due?: readonly DueRun[];
  /** Whether runs that are due or under way end at once. */
  readonly endsRuns?: true;
}

/** The runs of a followed job. */
export const WORK = ['poll', 'search', 'results'] as const;

const ROWS = {
  0: {},
  1: { next: 'unclear', times: 'all anew', due: WORK },
  2: { due: WORK },
  3: { next: 'active', times: 'reported' },
  4: { next: 'stored' },
  5: { next: 'deleted', due: ['pass'], endsRuns: true },
  6: { next: 'active', times: 'reported' },
  7: { next: 'over', times: 'all anew', due: ['poll', 'results'] },
  8: { next: 'over' },
  9: { next: 'unclear' },
  10: { next: 'deleted', due: ['pass'], endsRuns: true },
  11: { times: 'quiet anew' },
  12: { times: 'quiet poll' },
  13: { times: 'all anew' },
  14: { times: 'delayed' },
  15: { due: ['pass'] },
  16: { next: 'settled' },
  17: { next: 'ended' },
  18: { times: 'refused' },
  19: { next: 'ending', due: ['pass'] },
  20: { next: 'ended', endsRuns: true },
} as const satisfies Readonly<Record<number, LifeRow>>;

type RowNumber = keyof typeof ROWS;

const NEXT = {
  watched: { unclear: 2, active: 2, stored: 2, over: 2, deleted: 5, ending: 1, settled: 1, ended: 1 },
  'last reported active': { unclear: 3, active: 0, stored: 0, over: 0, deleted: 0, ending: 0, settled: 0, ended: 0 },
  'last reported over': { unclear: 4, active: 0, stored: 0, over: 0, deleted: 0, ending: 0, settled: 0, ended: 0 },
  'last reported deleted': { unclear: 5, active: 0, stored: 0, over: 0, deleted: 0, ending: 0, settled: 0, ended: 0 },
  'reported active': { unclear: 6, active: 6, stored: 6, over: 6, deleted: 0, ending: 0, settled: 6, ended: 0 },
  'reported over': { unclear: 7, active: 7, stored: 8, over: 0, deleted: 0, ending: 0, settled: 0, ended: 0 },
  'reported over anew': { unclear: 7, active: 7, stored: 7, over: 7, deleted: 0, ending: 0, settled: 7, ended: 0 },
  'reported unclear': { unclear: 0, active: 9, stored: 9, over: 9, deleted: 0, ending: 0, settled: 0, ended: 0 },
  'reported deleted': { unclear: 10, active: 10, stored: 10, over: 10, deleted: 0, ending: 0, settled: 0, ended: 0 },
  'report refused': { unclear: 0, active: 0, stored: 8, over: 0, deleted: 0, ending: 0, settled: 0, ended: 0 },
  'poll failed': { unclear: 11, active: 11, stored: 11, over: 11, deleted: 0, ending: 0, settled: 0, ended: 0 },
  'poll refused': { unclear: 11, active: 11, stored: 11, over: 12, deleted: 0, ending: 0, settled: 0, ended: 0 },
  'quiet poll': { unclear: 12, active: 12, stored: 12, over: 12, deleted: 0, ending: 0, settled: 0, ended: 0 },
  growth: { unclear: 13, active: 13, stored: 13, over: 13, deleted: 0, ending: 0, settled: 0, ended: 0 },
  'end delayed': { unclear: 14, active: 14, stored: 0, over: 14, deleted: 0, ending: 0, settled: 0, ended: 0 },
  'end due': { unclear: 15, active: 15, stored: 0, over: 15, deleted: 15, ending: 0, settled: 0, ended: 0 },
  'pass equal': { unclear: 16, active: 16, stored: 0, over: 16, deleted: 16, ending: 17, settled: 0, ended: 0 },
  'pass unequal': { unclear: 13, active: 13, stored: 13, over: 13, deleted: 0, ending: 17, settled: 0, ended: 0 },
  'pass refused': { unclear: 18, active: 18, stored: 18, over: 18, deleted: 18, ending: 18, settled: 0, ended: 0 },
  'given up': { unclear: 16, active: 16, stored: 0, over: 16, deleted: 16, ending: 17, settled: 0, ended: 0 },
  unwatched: { unclear: 19, active: 19, stored: 19, over: 19, deleted: 19, ending: 0, settled: 19, ended: 19 },
  left: { unclear: 20, active: 20, stored: 20, over: 20, deleted: 20, ending: 20, settled: 0, ended: 0 },
} as const satisfies Readonly<Record<string, Readonly<Record<Stage, RowNumber>>>>;

export type JobEvent = keyof typeof NEXT;

export const rowOf = (stage: Stage, event: JobEvent): LifeRow => ROWS[NEXT[event][stage]];

export function happened(life: Life, event: JobEvent, now: number): Life {
  const { next = life.stage, times = 'same' } = rowOf(life.stage, event);
  return { ...life, ...TIMES[times](life, now), stage: next };
}

export const isFollowed = ({ stage }: Life) => stage !== 'ending' && stage !== 'settled' && stage !== 'ended';

/** The quiet time of a newly followed job, also before this start. By the wall clock, once: it may be set at any time. */
export function quietBefore({ grownAt, watchedAt }: JobRow, last: JobInformationRow | undefined): number {
  return Math.max(watchedAt, grownAt ?? watchedAt, last?.since ?? watchedAt);
}

/** How the last report before it is followed reads now. */
export function lastReported(last: JobInformationRow | undefined): JobEvent | undefined {
  const state = last?.information.state ?? null;
  const phase = state === DELETED ? 'deleted' : phaseOf(state);
  return phase && `last reported ${phase}`;
}

/** `startedBefore`: the start time that was reported before, if one was. */
export function reportEvent({ state, startTime }: JobInformation, startedBefore: JobTime | null): JobEvent {
  if (state === DELETED) return 'reported deleted';
  const phase = phaseOf(state);
  if (phase === 'over' && isOtherRun(startTime, startedBefore)) return 'reported over anew';
  return `reported ${phase ?? 'unclear'}`;
}

/** What a poll or search that worked shows. `hasResponse`: a job that is over may have no file to ask for. */
export function afterPoll(life: Life, beganAt: number, hasResponse: boolean, now: number): Life {
  const counts = beganAt >= life.quietSince && (hasResponse || life.stage === 'over');
  return counts ? happened(life, 'quiet poll', now) : life;
}

/** Files are flushed after the job state is final (docs/dev/servers.md 10.3). */
const FLUSH_MS = 60_000;
const FLUSH_POLLS = 2;
/** How long files, listings or last passes that fail delay the end of their job: there may be bytes that are not here. */
const FAILING_MS = 15 * 60_000;
const REFUSED_PASSES = 3;
/** Maximum age of a reported job state. */
const REPORTED_MS = 10 * 60_000;

/** Milliseconds until the quiet time is long enough for the end; 0 or less from then on. */
export function quietInMs({ stage, settleAfterMs, reportedAt, quietSince }: Life, now: number): number {
  if (stage === 'deleted') return 0;
  if (stage === 'over') return FLUSH_MS - (now - quietSince);
  const isUnclear = stage === 'unclear' || (stage === 'active' && now - reportedAt >= REPORTED_MS);
  return isUnclear && settleAfterMs !== null ? settleAfterMs - (now - quietSince) : Number.POSITIVE_INFINITY;
}

/** Milliseconds until failures have delayed the end for as long as they may; infinite while nothing delays it. */
export const overdueInMs = ({ delayedSince }: Life, now: number) =>
  delayedSince === null ? Number.POSITIVE_INFINITY : delayedSince + FAILING_MS - now;

/** The delay of a retry: when the end is delayed no longer, failing runs are tried once more. */
export function retryInMs(life: Life, now: number, delayMs: number): number {
  const inMs = overdueInMs(life, now);
  return inMs > 0 ? Math.min(delayMs, inMs) : delayMs;
}

/** What the polls show of the end. `mayStillCome`: whether a request fails that may succeed later. */
export function endOf(life: Life, now: number, mayStillCome: () => boolean): 'end due' | 'end delayed' | undefined {
  if (life.stage === 'deleted') return 'end due';
  if (quietInMs(life, now) > 0 || life.quietPolls < FLUSH_POLLS) return undefined;
  return overdueInMs(life, now) <= 0 || !mayStillCome() ? 'end due' : 'end delayed';
}

/**
 * The service refuses a poll or a pass by its response, or, while it responds to others, by a timeout or by no session.
 * A timeout alone proves nothing. A pass that fails otherwise is retried for as long as it takes.
 */
export function failureOf(
  run: 'poll' | 'pass',
  { code, policy }: JobtailError,
  hasRespondedToOthers: boolean,
): JobEvent | undefined {
  const isRefusal = !policy.isOfService && (policy.exitCode === EXIT.service || policy.exitCode === EXIT.notFound);
  const isOfThisJob = hasRespondedToOthers && (code === 'timeout' || code === 'session-lost');
  if (isRefusal || isOfThisJob) return `${run} refused`;
  return run === 'poll' && code !== 'timeout' ? 'poll failed' : undefined;
}

export const isGivenUp = (life: Life, now: number) =>
  overdueInMs(life, now) <= 0 && life.refusedPasses >= REFUSED_PASSES;
