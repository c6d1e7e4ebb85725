/** The reports about jobs and their tasks (docs/dev/rest.md 3.6). */

import { JOB_STATES } from '../../src/remote/rest/contract.ts';
import type { Release } from '../../src/remote/rest/releases.ts';
import type { SubmittedJob } from '../cluster/cluster.ts';
import type { Answer } from '../exchange.ts';
import { type ReportedJob, type ReportedTask, reportedJob } from '../operations/reported-jobs.ts';
import type { SandboxPlace } from '../place.ts';
import { answerOf, streamed } from './call.ts';
import { jsonOf, membersOf } from './json.ts';

/** Of a type of its own, whose members have names of those of the task. */
const NODE_TYPE = {
  ...{ Id: 1, Name: 'local', Description: 'local' },
  Project: {
    ...{ Id: 1, Name: 'Proj', Description: 'p', AccountingString: 'ACC' },
    CommandTemplate: {
      ...{ Id: 2, Name: 'GenericCommandTemplate', Description: 'Command template for generic job.' },
      ...{ ExtendedAllocationCommand: null, IsGeneric: true, IsEnabled: true, CreatedFromGenericTemplateId: null },
      TemplateParameters: [{ Identifier: 'userScriptPath', Description: 'Path of the user script' }],
    },
  },
};

export function currentInfo(job: SubmittedJob, release: Release, place: SandboxPlace): Answer {
  return answerOf(jobOf(reportedJob(job, place.clock()), release));
}

/** Job by job. */
export function jobsOf(username: string, release: Release, place: SandboxPlace): Answer {
  return streamed(listOf(username, release, place));
}

async function* listOf(username: string, release: Release, { cluster, clock }: SandboxPlace): AsyncGenerator<string> {
  const jobs = cluster.jobs.filter(({ owner }) => owner === username);
  yield '[';
  for (const [index, job] of jobs.entries()) {
    const reported = jobOf(reportedJob(job, clock()), release);
    yield `${index > 0 ? ',' : ''}${jsonOf(reported)}`;
  }
  yield ']';
}

function jobOf(job: ReportedJob, release: Release) {
  const reported = {
    Id: BigInt(job.id),
    Name: job.name,
    State: JOB_STATES[job.state],
    Project: 'ACC',
    CreationTime: timeOf(job.creationMs),
    SubmitTime: timeOf(job.submitMs),
    ...spanOf(job, release),
    TotalAllocatedTime: job.allocatedSeconds,
    Tasks: job.tasks.map((task) => taskOf(task, release)),
  };
  return membersOf(reported, release.jobMembers);
}

function taskOf(task: ReportedTask, release: Release) {
  const reported = {
    Id: BigInt(task.id),
    Name: task.name,
    State: JOB_STATES[task.state],
    Priority: 4,
    AllocatedTime: task.allocatedSeconds,
    AllocatedCoreIds: [],
    ...spanOf(task, release),
    NodeType: NODE_TYPE,
    ErrorMessage: task.errorMessage,
  };
  return membersOf(reported, release.taskMembers);
}

/** Start and end have whole seconds: the cluster reports them. */
function spanOf({ startMs, endMs }: Pick<ReportedTask, 'startMs' | 'endMs'>, release: Release) {
  const end = startMs === null ? null : release.noEnd;
  return {
    StartTime: timeOf(wholeSecond(startMs)),
    EndTime: timeOf(wholeSecond(endMs)) ?? end,
  };
}

const wholeSecond = (atMs: number | null) => atMs && atMs - (atMs % 1000);

/** No zone, and seven digits after the second unless these are all 0. */
function timeOf(atMs: number | null): string | null {
  if (atMs === null) return null;
  return new Date(atMs)
    .toISOString()
    .slice(0, -1)
    .replace(/\.(\d{3})$/, (_, digits) => (digits === '000' ? '' : `.${digits}1647`));
}
