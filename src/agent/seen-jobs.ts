/** What a list of all jobs shows of those that the rule for jobs of the user takes from the next list. */
import type { JobId } from '../job.ts';
import { isLater, type JobInformation, type JobTime, phaseOf } from '../job-information.ts';
import { inSlices } from '../slices.ts';

export interface SeenJobs {
  readonly active: ReadonlyMap<JobId, string>;
  /** The latest submission: a later one is of a job that came after the list. No clock of this machine is asked. */
  readonly submitted: JobTime | null;
}

export async function seenIn(listed: readonly JobInformation[]): Promise<SeenJobs> {
  const active = new Map<JobId, string>();
  let submitted: JobTime | null = null;
  for await (const { id, state, submitTime } of inSlices(listed)) {
    if (state !== null && phaseOf(state) === 'active') active.set(id, state);
    if (submitTime !== null && (submitted === null || isLater(submitTime, submitted))) submitted = submitTime;
  }
  return { active, submitted };
}

/** The job state in which a job is known to have been before it is taken, if the list before shows that it was active. */
export function seenStateOf({ id, submitTime }: JobInformation, before: SeenJobs | undefined): string | null {
  if (before === undefined) return null;
  const isNew = submitTime !== null && before.submitted !== null && isLater(submitTime, before.submitted);
  return before.active.get(id) ?? (isNew ? 'Submitted' : null);
}
