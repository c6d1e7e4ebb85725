/** What the middleware reports about a job (docs/dev/soap.md 10). Its state in the agent is another one. */
import type { JobId, TaskId } from './job.ts';

/** The phase of a job by its job state: more bytes will come, or only bytes that are flushed late. */
type JobPhase = 'active' | 'over';

/** The words that are known (docs/dev/servers.md 10.3). One that waits for a service account is not over. */
const PHASES: ReadonlyMap<string, JobPhase> = new Map([
  ['Configuring', 'active'],
  ['Submitted', 'active'],
  ['Queued', 'active'],
  ['Running', 'active'],
  ['WaitingForServiceAccount', 'active'],
  ['Finished', 'over'],
  ['Failed', 'over'],
  ['Canceled', 'over'],
  ['Deleted', 'over'],
]);

export const isRunning = (jobState: string | null): boolean => jobState === 'Running';

/** Undefined for a word that is not known, and for none: nothing is concluded from it. */
export function phaseOf(jobState: string | null): JobPhase | undefined {
  return jobState === null ? undefined : PHASES.get(jobState);
}

/** A time, as reported. */
export interface JobTime {
  readonly text: string;
  /** Milliseconds since 1970; null if it has no time zone: it is never guessed. */
  readonly ms: number | null;
}

/** One task of a job. Texts are as reported: displays escape them. */
export interface TaskInformation {
  readonly id: TaskId;
  readonly name: string | null;
  readonly state: string | null;
  readonly startTime: JobTime | null;
  readonly endTime: JobTime | null;
  readonly errorMessage: string | null;
}

export interface JobInformation {
  readonly id: JobId;
  readonly name: string | null;
  /** The job state in the words of the middleware. */
  readonly state: string | null;
  readonly creationTime: JobTime | null;
  readonly submitTime: JobTime | null;
  readonly startTime: JobTime | null;
  readonly endTime: JobTime | null;
  readonly tasks: readonly TaskInformation[];
}

/** `xs:dateTime`. Others than these are kept as text. */
const DATE_TIME = /^-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?$/;

/** No zone of the earth is further behind. */
const FURTHEST_ZONE_MS = 12 * 60 * 60_000;
/** A release may leave out the fraction. */
const SECOND_MS = 1_000;

/** A time from the text of an `xs:dateTime`. */
export function jobTimeOf(text: string): JobTime {
  const zone = DATE_TIME.exec(text)?.[2];
  const ms = zone === undefined ? Number.NaN : Date.parse(inMilliseconds(text));
  return { text, ms: Number.isFinite(ms) ? ms : null };
}

/** The latest moment that a time can mean, in milliseconds since 1970; undefined if it is none. */
export function latestMsOf(time: JobTime): number | undefined {
  const utc = utcOf(time);
  return utc === undefined || time.ms !== null ? utc : utc + FURTHEST_ZONE_MS;
}

/**
 * Whether two start times belong to the same run: the same moment, in whatever spelling. If only one of them has its zone,
 * they may be the same moment in any zone. Undefined if that is not known.
 */
export function isSameRun(start: JobTime | null, before: JobTime | null): boolean | undefined {
  if (start === null || before === null) return undefined;
  if (start.text === before.text) return true;
  const [one, other] = [utcOf(start), utcOf(before)];
  if (one === undefined || other === undefined) return false;
  const apartMs = Math.abs(one - other);
  if ((start.ms === null) !== (before.ms === null)) return apartMs >= 2 * FURTHEST_ZONE_MS ? false : undefined;
  return apartMs < SECOND_MS;
}

export const isOtherRun = (start: JobTime | null, before: JobTime | null) => isSameRun(start, before) === false;

/** Whether a time is later than another one of the same service: both with a zone, or both without. */
export function isLater(time: JobTime, other: JobTime): boolean {
  const [one, two] = [utcOf(time), utcOf(other)];
  return one !== undefined && two !== undefined && (time.ms === null) === (other.ms === null) && one > two;
}

/** Zones differ by more: the cluster may report its times in another one. */
const MAX_CLOCK_MS = 30 * 60_000;
const MIN_CLOCK_MS = 5_000;

/** By how much a job started before its submission, in milliseconds, as the clock of the cluster is behind; 0: not. */
export function startedEarlyMs({ submitTime, startTime }: Pick<JobInformation, 'submitTime' | 'startTime'>): number {
  if (submitTime === null || startTime === null || !isLater(submitTime, startTime)) return 0;
  const earlyMs = (utcOf(submitTime) ?? 0) - (utcOf(startTime) ?? 0);
  return earlyMs >= MIN_CLOCK_MS && earlyMs < MAX_CLOCK_MS ? earlyMs : 0;
}

/** What that leads to, and what helps. */
export const EARLY_START_HINT =
  'the clock of the service is ahead of the cluster: files of that time are never listed; `agent verify --complete` names them';

/** A time without a zone as if it were in UTC; undefined if the text is no time. */
function utcOf({ text, ms }: JobTime): number | undefined {
  const found = ms ?? (DATE_TIME.test(text) ? Date.parse(`${inMilliseconds(text)}Z`) : Number.NaN);
  return Number.isFinite(found) ? found : undefined;
}

/** JavaScript reads three digits behind the second. */
const inMilliseconds = (text: string) => text.replace(/(\.\d{3})\d+/, '$1');

/** A job as `--json` and the page have it: the words of the middleware. */
export interface JobAsReported extends Pick<JobInformation, 'name' | 'creationTime' | 'submitTime' | 'startTime'> {
  readonly jobState: string | null;
  readonly endTime: JobTime | null;
}

export function shownJob(information: JobInformation | undefined): JobAsReported {
  const { name = null, state: jobState = null, creationTime = null, submitTime = null } = information ?? {};
  const { startTime = null, endTime = null } = information ?? {};
  return { name, jobState, creationTime, submitTime, startTime, endTime: endOf(jobState, endTime) };
}

export type ShownTask = ReturnType<typeof shownTask>;

export function shownTask({ id, name, state, startTime, endTime, errorMessage }: TaskInformation) {
  return { taskId: id, name, taskState: state, startTime, endTime: endOf(state, endTime), errorMessage };
}

/** An active job has no end, but a service may return its limit, or the year 1 (docs/dev/servers.md 10.3). */
const endOf = (state: string | null, endTime: JobTime | null) => (phaseOf(state) === 'active' ? null : endTime);
