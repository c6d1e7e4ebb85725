/** Derives events from the state of a job: compares the last read row with the store. */
import { randomUUID } from 'node:crypto';
import { isOtherRun, isRunning, isSameRun, type JobInformation, jobTimeOf, phaseOf } from '../job-information.ts';
import type { EventType, NotifyEvent } from '../notification.ts';
import { countOf } from '../numbers.ts';
import type { NotifiedJobRow } from '../store/outbox.ts';
import type { JobInformationRow, JobRow } from '../store/rows.ts';

const MAX_MESSAGES = 3;

export type EventOf = Partial<NotifyEvent>;

export function newEvent(type: NotifyEvent['type'], now: number, about: EventOf): NotifyEvent {
  return { id: randomUUID(), type, time: new Date(now).toISOString(), count: 1, ...about };
}

export interface JobNews {
  /** What was read of the job. Of one run, the furthest report: the next one may be older. */
  readonly row: NotifiedJobRow;
  /** Those since `before`; undefined: since it was watched. */
  readonly events: (now: number, isComplete: () => boolean) => NotifyEvent[];
}

/** What is new of a job since the row that was read last. */
export function newsOf(
  read: NotifiedJobRow | undefined,
  job: JobRow,
  reported: JobInformationRow | undefined,
  hasFiles: boolean,
): JobNews {
  const isFormer = reported?.isFormer === true;
  // An active job that is watched again may have ended meanwhile: what was read of it before counts no longer.
  const isOld = isFormer && phaseOf(read?.jobState ?? null) === 'active';
  const before = isOld && read !== undefined ? { ...read, jobState: null, startedAt: null } : read;
  const news = isFormer ? undefined : furthest(before, reported);
  const { state = null, startTime } = news ?? {};
  const jobState = news === undefined ? (before?.jobState ?? null) : state;
  const startedAt = startTime?.text ?? before?.startedAt ?? null;
  const jobName = reported?.information.name ?? null;
  const row = { jobId: job.jobId, jobState, startedAt, watchState: job.state, stalledAt: job.stalledAt, hasFiles };
  const events = (now: number, isComplete: () => boolean) => {
    const about = { jobId: job.jobId, ...(jobName === null ? {} : { jobName }) };
    const event = (type: EventType, reason?: string) =>
      newEvent(type, now, { ...about, ...(reason === undefined ? {} : { reason }) });
    const events: NotifyEvent[] = [];
    if (news !== undefined) {
      const { state, startTime } = news;
      const former = before?.jobState ?? job.seenState;
      const isOther = before?.startedAt != null && isOtherRun(startTime, jobTimeOf(before.startedAt));
      const hadStarted = !isOther && former !== null && STARTED.includes(former);
      const isNew = state !== former || isOther;
      if (state !== null && isNew && (former !== null || !wasOver(news, job.watchedAt))) {
        const end = ENDS[state];
        const isRunningAgain = state === 'Running' && former !== 'Running';
        if (isRunningAgain || (STARTED.includes(state) && !hadStarted)) events.push(event('started'));
        if (end !== undefined) events.push(event(end, reasonOf(news)));
      }
    }
    if (job.stalledAt !== null && job.stalledAt !== before?.stalledAt)
      events.push(
        event('stalled', `it runs, and no live file has grown since ${new Date(job.stalledAt).toISOString()}`),
      );
    if (job.state === 'settled' && before?.watchState !== 'settled' && job.results && isComplete())
      events.push(event('results-complete', 'the last complete pass is done'));
    return events;
  };
  return { row, events };
}

/** A report, unless it goes back in the run that was read: lists may lag, and other nodes may answer. */
function furthest(before: NotifiedJobRow | undefined, reported: JobInformationRow | undefined) {
  const information = reported?.information;
  if (information === undefined || before == null || before.startedAt === null) return information;
  const { state, startTime } = information;
  const goesBack = progressOf(state) < progressOf(before.jobState);
  const isSame = startTime === null || isSameRun(startTime, jobTimeOf(before.startedAt));
  return goesBack && isSame ? undefined : information;
}

const progressOf = (state: string | null) => (phaseOf(state) === 'over' ? 2 : Number(isRunning(state)));

const ENDS: Readonly<Record<string, EventType>> = { Finished: 'finished', Failed: 'failed', Canceled: 'canceled' };
const STARTED = ['Running', 'Finished', 'Failed'];

/** By its first report, a job was over before it was watched, unless an end with a time zone is later. */
function wasOver({ state, endTime }: JobInformation, watchedAt: number): boolean {
  return phaseOf(state) === 'over' && (endTime?.ms ?? Number.NEGATIVE_INFINITY) < watchedAt;
}

function reasonOf({ tasks }: JobInformation): string | undefined {
  const messages = tasks.flatMap(({ id, errorMessage }) =>
    errorMessage === null || errorMessage.trim() === '' ? [] : [`task ${id}: ${errorMessage}`],
  );
  if (messages.length === 0) return undefined;
  const more = messages.length - MAX_MESSAGES;
  const shown = messages.slice(0, MAX_MESSAGES).join('; ');
  return more > 0 ? `${shown}; and ${countOf(more, 'task')} more` : shown;
}
