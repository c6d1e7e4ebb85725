/** The two operations of JobManagementWs (docs/interface.md 10): what is told of jobs and of their tasks. */
import type { SubmittedJob, SubmittedTask } from '../cluster/cluster.ts';
import type { SandboxHabits } from '../habits.ts';
import type { SandboxPlace } from '../place.ts';
import { element, memberElement, nilElement, responseAround, textElement } from './answer.ts';

const OFFSET_MS = 3_600_000;

/** The answer of GetCurrentInfoForJob. */
export function getCurrentInfo(job: SubmittedJob, { namespace, habits, clock }: SandboxPlace): AsyncGenerator<string> {
  const result = element('GetCurrentInfoForJobResult', jobMembers(job, habits, clock()));
  return responseAround('GetCurrentInfoForJob', namespace, [result]);
}

/** The answer of ListJobsForCurrentUser, job by job. */
export function listJobs(username: string, place: SandboxPlace): AsyncGenerator<string> {
  return responseAround('ListJobsForCurrentUser', place.namespace, listedJobs(username, place));
}

function* listedJobs(username: string, { cluster, habits, clock }: SandboxPlace): Generator<string> {
  const name = 'ListJobsForCurrentUserResult';
  const jobs = cluster.jobs.filter(({ owner }) => owner === username);
  if (jobs.length === 0 && !habits.nilEntries) {
    yield element(name);
    return;
  }
  yield `<${name}>${habits.nilEntries ? nilElement('SubmittedJobInfoExt') : ''}`;
  for (const job of jobs) yield element('SubmittedJobInfoExt', jobMembers(job, habits, clock()));
  yield `</${name}>`;
}

/** The members of a SubmittedJobInfoExt in their order. */
function jobMembers(job: SubmittedJob, habits: SandboxHabits, nowMs: number): string {
  const { createdAtMs, submittedAtMs, startedAtMs, endedAtMs } = job;
  const tasks = job.tasks.map((task) => element('SubmittedTaskInfoExt', taskMembers(task, habits, nowMs)));
  const told = [
    textElement('id', job.jobId),
    textElement('name', job.name),
    textElement('state', job.toldState ?? job.state),
    textElement('priority', 'Average'),
    memberElement('project', null, habits.nullMembers),
    timeElement('creationTime', createdAtMs, habits),
    timeElement('submitTime', submittedAtMs, habits),
    timeElement('startTime', startedAtMs, habits),
    timeElement('endTime', endedAtMs, habits),
    secondsElement('totalAllocatedTime', startedAtMs, endedAtMs ?? nowMs),
    memberElement('allParameters', null, habits.nullMembers),
    // Of a type of its own, whose members have the names of those of the job.
    element('nodeType', textElement('id', '1') + textElement('name', 'standard') + textElement('state', 'Idle')),
    element('tasks', (habits.nilEntries ? nilElement('SubmittedTaskInfoExt') : '') + tasks.join('')),
  ];
  return told.join('');
}

/** The members of a SubmittedTaskInfoExt in their order. */
function taskMembers({ taskId, name, run }: SubmittedTask, habits: SandboxHabits, nowMs: number): string {
  const { startedAtMs, endedAtMs } = run;
  const told = [
    textElement('id', taskId),
    textElement('name', name),
    textElement('state', run.state),
    secondsElement('allocatedTime', startedAtMs, endedAtMs ?? nowMs),
    memberElement('allocatedCoreIds', startedAtMs === undefined ? null : '0', habits.nullMembers),
    timeElement('startTime', startedAtMs, habits),
    timeElement('endTime', endedAtMs, habits),
    memberElement('errorMessage', run.errorMessage, habits.nullMembers),
    memberElement('allParameters', null, habits.nullMembers),
  ];
  return told.join('');
}

function timeElement(name: string, atMs: number | undefined, { jobTimes }: SandboxHabits): string {
  return atMs === undefined ? nilElement(name) : textElement(name, dateTimeOf(atMs, jobTimes));
}

function dateTimeOf(atMs: number, form: SandboxHabits['jobTimes']): string {
  if (form === 'offset') return new Date(atMs + OFFSET_MS).toISOString().replace('Z', '+01:00');
  const text = new Date(atMs).toISOString();
  return form === 'utc' ? text : text.replace('Z', '');
}

function secondsElement(name: string, fromMs: number | undefined, toMs: number): string {
  return fromMs === undefined ? nilElement(name) : textElement(name, String((toMs - fromMs) / 1000));
}
