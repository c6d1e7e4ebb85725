/** The two operations of JobManagementWs (docs/dev/soap.md 10): reports about jobs and their tasks, as XML. */
import type { SubmittedJob } from '../cluster/cluster.ts';
import { type ReportedJob, type ReportedTask, reportedJob } from '../operations/reported-jobs.ts';
import type { SandboxPlace } from '../place.ts';
import { element, nilElement, responseAround, textElement } from './answer.ts';

/** The answer of GetCurrentInfoForJob. */
export function getCurrentInfo(job: SubmittedJob, { namespace, clock }: SandboxPlace): AsyncGenerator<string> {
  const result = element('GetCurrentInfoForJobResult', jobMembers(reportedJob(job, clock())));
  return responseAround('GetCurrentInfoForJob', namespace, [result]);
}

/** The answer of ListJobsForCurrentUser, job by job. */
export function listJobs(username: string, place: SandboxPlace): AsyncGenerator<string> {
  return responseAround('ListJobsForCurrentUser', place.namespace, listedJobs(username, place));
}

function* listedJobs(username: string, { cluster, clock }: SandboxPlace): Generator<string> {
  const name = 'ListJobsForCurrentUserResult';
  const jobs = cluster.jobs.filter(({ owner }) => owner === username);
  if (jobs.length === 0) {
    yield element(name);
    return;
  }
  yield `<${name}>`;
  for (const job of jobs) yield element('SubmittedJobInfoExt', jobMembers(reportedJob(job, clock())));
  yield `</${name}>`;
}

/** The members of a SubmittedJobInfoExt in their order. */
function jobMembers(job: ReportedJob): string {
  const tasks = job.tasks.map((task) => element('SubmittedTaskInfoExt', taskMembers(task)));
  const reported = [
    textElement('id', job.id),
    textElement('name', job.name),
    textElement('state', job.state),
    textElement('priority', 'Average'),
    timeElement('creationTime', job.creationMs),
    timeElement('submitTime', job.submitMs),
    timeElement('startTime', job.startMs),
    timeElement('endTime', job.endMs),
    valueElement('totalAllocatedTime', job.allocatedSeconds),
    // Of a type of its own, whose members have the names of those of the job.
    element('nodeType', textElement('id', '1') + textElement('name', 'standard') + textElement('state', 'Idle')),
    element('tasks', tasks.join('')),
  ];
  return reported.join('');
}

/** The members of a SubmittedTaskInfoExt in their order. */
function taskMembers(task: ReportedTask): string {
  const reported = [
    textElement('id', task.id),
    textElement('name', task.name),
    textElement('state', task.state),
    valueElement('allocatedTime', task.allocatedSeconds),
    task.startMs === null ? '' : textElement('allocatedCoreIds', '0'),
    timeElement('startTime', task.startMs),
    timeElement('endTime', task.endMs),
    task.errorMessage === null ? '' : textElement('errorMessage', task.errorMessage),
  ];
  return reported.join('');
}

function timeElement(name: string, atMs: number | null): string {
  return valueElement(name, atMs === null ? null : new Date(atMs).toISOString());
}

/** One that is always there, and nil without a value. */
function valueElement(name: string, value: string | number | null): string {
  return value === null ? nilElement(name) : textElement(name, String(value));
}
