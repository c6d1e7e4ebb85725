/** What is told of jobs and their tasks (docs/rest.md 3.6). */
import { JOB, JOB_STATES, TASK } from '../../remote/rest/contract.ts';
import type { SubmittedJob } from '../cluster/cluster.ts';
import type { Answer } from '../exchange.ts';
import type { ToldJob, ToldTask } from '../operations/told-jobs.ts';
import type { SandboxPlace } from '../place.ts';
import { answerOf, streamed } from './call.ts';
import { jsonOf } from './json.ts';

export function currentInfo(job: SubmittedJob, place: SandboxPlace): Answer {
  return answerOf(jobOf(place.toldJobs.tell(job)), place);
}

/** Job by job. */
export function jobsOf(username: string, place: SandboxPlace): Answer {
  return streamed(listOf(username, place));
}

async function* listOf(username: string, { cluster, habits, toldJobs }: SandboxPlace): AsyncGenerator<string> {
  const jobs = cluster.jobs.filter(({ owner }) => owner === username);
  yield habits.nilEntries ? '[null' : '[';
  for (const [index, job] of jobs.entries()) {
    yield `${index > 0 || habits.nilEntries ? ',' : ''}${jsonOf(jobOf(toldJobs.tell(job)), habits)}`;
  }
  yield ']';
}

function jobOf(job: ToldJob) {
  return {
    [JOB.id]: BigInt(job.id),
    [JOB.name]: job.name,
    [JOB.state]: stateOf(job.state),
    Project: null,
    [JOB.creationTime]: job.creationTime,
    [JOB.submitTime]: job.submitTime,
    [JOB.startTime]: job.startTime,
    [JOB.endTime]: job.endTime,
    TotalAllocatedTime: job.allocatedSeconds,
    AllParameters: null,
    [JOB.tasks]: job.tasks.map(taskOf),
  };
}

function taskOf(task: ToldTask) {
  return {
    [TASK.id]: BigInt(task.id),
    [TASK.name]: task.name,
    [TASK.state]: stateOf(task.state),
    AllocatedTime: task.allocatedSeconds,
    AllocatedCoreIds: null,
    [TASK.startTime]: task.startTime,
    [TASK.endTime]: task.endTime,
    // Of a type of its own, whose members have the names of those of the task.
    NodeType: { [TASK.id]: 1, [TASK.name]: 'standard', [TASK.state]: 0 },
    [TASK.errorMessage]: task.errorMessage,
    AllParameters: null,
  };
}

/** The number of a state; one that is told in place of the real one may be any number, too. */
function stateOf(state: string): number {
  return JOB_STATES[state as keyof typeof JOB_STATES] ?? Number.parseInt(state, 10);
}
