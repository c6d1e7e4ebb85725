/** `agent check`: which way tasks and states of jobs are found on this server, and what a better way would be. */
import { performance } from 'node:perf_hooks';
import type { JobService } from '../../agent/ports.ts';
import type { Config } from '../../config/config.ts';
import { wayTo } from '../../daemon/connection.ts';
import { countOf } from '../../numbers.ts';
import type { Store } from '../../store/store.ts';
import { jobsUrlBeside } from './description.ts';
import { type Finding, note, ok } from './findings.ts';

const BY_FILES = 'tasks are found by asking for their files, and job states are not told';
const ENDS = 'a job ends by agent unwatch, or after settleAfterMinutes';

/** Whether somebody tells of jobs. @throws JobtailError of a service that is configured, and does not answer */
export async function checkJobs(
  config: Config,
  jobService: JobService | null,
  signal: AbortSignal,
): Promise<Finding[]> {
  if (jobService !== null) {
    const startedAt = performance.now();
    const jobs = await jobService.listJobs(signal);
    const running = jobs.filter(({ state }) => state === 'Running').length;
    const took = `${Math.round(performance.now() - startedAt)} ms`;
    const told = `${config.service.protocol === 'soap' ? 'JobManagementWs' : 'JobManagement of REST, with nothing to configure,'} tells of ${countOf(jobs.length, 'job')}, ${running} of them running, in ${took}`;
    return [ok(`${told}: tasks and job states come from it`)];
  }
  const { service } = config;
  const found = service.protocol === 'soap' ? await jobsUrlBeside(service, signal, await wayTo(config)) : undefined;
  if (found !== undefined)
    return [{ mark: 'note', text: BY_FILES, hint: `JobManagementWs answers: set service.jobsUrl to ${found}` }];
  const hint = 'if there is a JobManagementWs elsewhere, set service.jobsUrl to its address';
  return [{ mark: 'note', text: `${BY_FILES}: ${ENDS}`, hint }];
}

/** What was learned of the ids of tasks on this service. */
export function taskHabits({ habits }: Pick<Store, 'habits'>): Finding[] {
  const shift = habits.get('task-shift');
  const found: Finding[] = [];
  if (shift !== undefined) {
    const by = shift === '0' ? 'equal those of their specifications' : `are those of their specifications and ${shift}`;
    found.push(note(`ids of tasks ${by}`));
  }
  if (habits.get('strange-tasks') === 'fault')
    found.push(note('an id that is no task fails its call: tasks are looked for one by one'));
  return found;
}
