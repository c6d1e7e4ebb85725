/** Derives events from the state of a job: compares the last read row with the store. */
import { randomUUID } from 'node:crypto';
import { type JobInformation, phaseOf } from '../job-information.ts';
import type { EventType, NotifyEvent } from '../notification.ts';
import { countOf } from '../numbers.ts';
import type { NotifiedJobRow } from '../store/outbox.ts';
import type { JobInformationRow, JobRow } from '../store/rows.ts';

const MAX_MESSAGES = 3;

export type EventOf = Partial<NotifyEvent>;

export function newEvent(type: NotifyEvent['type'], now: number, about: EventOf): NotifyEvent {
  return { id: randomUUID(), type, time: new Date(now).toISOString(), count: 1, ...about };
}

export function notifiedRow(job: JobRow, reported: JobInformationRow | undefined, hasFiles: boolean): NotifiedJobRow {
  const jobState = reported?.information.state ?? null;
  return { jobId: job.jobId, jobState, watchState: job.state, stalledAt: job.stalledAt, hasFiles };
}

const ENDS: Readonly<Record<string, EventType>> = { Finished: 'finished', Failed: 'failed', Canceled: 'canceled' };
const STARTED = ['Running', 'Finished', 'Failed'];

/** The events of a job since `before`; undefined: since it was watched. */
export function eventsOf(
  before: NotifiedJobRow | undefined,
  job: JobRow,
  reported: JobInformationRow | undefined,
  now: number,
  isComplete: () => boolean,
): NotifyEvent[] {
  const information = reported?.information;
  const about = {
    jobId: job.jobId,
    ...(information?.name == null ? {} : { jobName: information.name }),
  };
  const event = (type: EventType, reason?: string) =>
    newEvent(type, now, { ...about, ...(reason === undefined ? {} : { reason }) });
  const events: NotifyEvent[] = [];
  if (information !== undefined) {
    const { state } = information;
    const former = before?.jobState ?? job.seenState;
    const hadStarted = former !== null && STARTED.includes(former);
    if (state !== null && state !== former && (former !== null || !wasOver(information, job.watchedAt))) {
      const end = ENDS[state];
      const isRunningAgain = state === 'Running' && former !== 'Running';
      if (isRunningAgain || (STARTED.includes(state) && !hadStarted)) events.push(event('started'));
      if (end !== undefined) events.push(event(end, reasonOf(information)));
    }
  }
  if (job.stalledAt !== null && job.stalledAt !== (before?.stalledAt ?? null))
    events.push(event('stalled', `it runs, and no live file has grown since ${new Date(job.stalledAt).toISOString()}`));
  if (job.state === 'settled' && before?.watchState !== 'settled' && job.results && isComplete())
    events.push(event('results-complete', 'the last complete pass is done'));
  return events;
}

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
