/** A job as the server of the view sends it, for tests of what the page makes of it. */
import type { JobSummary } from '../../src/view/contract/events.ts';

export const jobSummary = (jobId: string, more: Partial<JobSummary> = {}): JobSummary => ({
  jobId,
  name: null,
  jobState: null,
  phase: null,
  submitTime: null,
  startTime: null,
  runningSince: null,
  endTime: null,
  state: 'watched',
  owner: null,
  isElsewhere: false,
  source: 'command',
  tasks: 0,
  searchingTasks: false,
  liveBytes: 0,
  polledAt: null,
  grownAt: null,
  stalledAt: null,
  changedAt: 0,
  hasResults: true,
  results: null,
  error: null,
  ...more,
});
