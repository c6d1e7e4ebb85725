/** The two operations of JobManagementWs (docs/interface.md 10): what is told of jobs and of their tasks. */
import type { SubmittedJob, SubmittedTask } from '../cluster/cluster.ts';
import type { SandboxHabits } from '../habits.ts';
import type { SandboxPlace } from '../place.ts';
import { element, memberElement, nilElement, responseAround, textElement } from './answer.ts';

const OFFSET_MS = 3_600_000;

/** What was told of a job, and when it was found out. */
interface Told {
  readonly atMs: number;
  readonly members: string;
}

export class JobInformation {
  readonly #place: SandboxPlace;
  readonly #told = new WeakMap<SubmittedJob, Told>();

  constructor(place: SandboxPlace) {
    this.#place = place;
  }

  /** The answer of GetCurrentInfoForJob. */
  getCurrentInfo(job: SubmittedJob): AsyncGenerator<string> {
    const result = element('GetCurrentInfoForJobResult', this.#membersOf(job));
    return responseAround('GetCurrentInfoForJob', this.#place.namespace, [result]);
  }

  /** The answer of ListJobsForCurrentUser, job by job. */
  listJobs(username: string): AsyncGenerator<string> {
    return responseAround('ListJobsForCurrentUser', this.#place.namespace, this.#listedJobs(username));
  }

  *#listedJobs(username: string): Generator<string> {
    const { cluster, habits } = this.#place;
    const name = 'ListJobsForCurrentUserResult';
    const jobs = cluster.jobs.filter(({ owner }) => owner === username);
    if (jobs.length === 0 && !habits.nilEntries) {
      yield element(name);
      return;
    }
    yield `<${name}>${habits.nilEntries ? nilElement('SubmittedJobInfoExt') : ''}`;
    for (const job of jobs) yield element('SubmittedJobInfoExt', this.#membersOf(job));
    yield `</${name}>`;
  }

  /** As they were when the server last looked at the cluster. */
  #membersOf(job: SubmittedJob): string {
    const { habits, clock } = this.#place;
    const nowMs = clock();
    const last = this.#told.get(job);
    if (last !== undefined && nowMs < last.atMs + habits.stateSeconds * 1000) return last.members;
    const members = jobMembers(job, habits, nowMs);
    this.#told.set(job, { atMs: nowMs, members });
    return members;
  }
}

/** The members of a SubmittedJobInfoExt in their order. */
function jobMembers(job: SubmittedJob, habits: SandboxHabits, nowMs: number): string {
  const { createdAtMs, submittedAtMs, startedAtMs, endedAtMs } = job;
  const time = timeTeller(job, habits);
  const tasks = job.tasks.map((task) => element('SubmittedTaskInfoExt', taskMembers(task, { time, habits, nowMs })));
  const told = [
    textElement('id', job.jobId),
    textElement('name', job.name),
    textElement('state', job.toldState ?? job.state),
    textElement('priority', 'Average'),
    memberElement('project', null, habits.nullMembers),
    time('creationTime', createdAtMs),
    time('submitTime', submittedAtMs),
    time('startTime', startedAtMs),
    time('endTime', endedAtMs),
    secondsElement('totalAllocatedTime', startedAtMs, endedAtMs ?? nowMs),
    memberElement('allParameters', null, habits.nullMembers),
    // Of a type of its own, whose members have the names of those of the job.
    element('nodeType', textElement('id', '1') + textElement('name', 'standard') + textElement('state', 'Idle')),
    element('tasks', (habits.nilEntries ? nilElement('SubmittedTaskInfoExt') : '') + tasks.join('')),
  ];
  return told.join('');
}

type TimeTeller = (name: string, atMs: number | undefined) => string;

interface Telling {
  readonly time: TimeTeller;
  readonly habits: SandboxHabits;
  readonly nowMs: number;
}

/** The members of a SubmittedTaskInfoExt in their order. */
function taskMembers({ taskId, name, run }: SubmittedTask, { time, habits, nowMs }: Telling): string {
  const { startedAtMs, endedAtMs } = run;
  const told = [
    textElement('id', taskId),
    textElement('name', name),
    textElement('state', run.state),
    secondsElement('allocatedTime', startedAtMs, endedAtMs ?? nowMs),
    memberElement('allocatedCoreIds', startedAtMs === undefined ? null : '0', habits.nullMembers),
    time('startTime', startedAtMs),
    time('endTime', endedAtMs),
    memberElement('errorMessage', run.errorMessage, habits.nullMembers),
    memberElement('allParameters', null, habits.nullMembers),
  ];
  return told.join('');
}

/** Writes the times of a job and of its tasks. */
function timeTeller({ ageSeconds }: SubmittedJob, { jobTimes }: SandboxHabits): TimeTeller {
  return (name, atMs) =>
    atMs === undefined ? nilElement(name) : textElement(name, dateTimeOf(atMs - ageSeconds * 1000, jobTimes));
}

function dateTimeOf(atMs: number, form: SandboxHabits['jobTimes']): string {
  if (form === 'offset') return new Date(atMs + OFFSET_MS).toISOString().replace('Z', '+01:00');
  const text = new Date(atMs).toISOString();
  return form === 'utc' ? text : text.replace('Z', '');
}

function secondsElement(name: string, fromMs: number | undefined, toMs: number): string {
  return fromMs === undefined ? nilElement(name) : textElement(name, String((toMs - fromMs) / 1000));
}
