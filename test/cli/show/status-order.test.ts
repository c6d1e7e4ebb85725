/** The order of jobs on a screen, what it leaves out, and times of jobs that go on. */
import { expect, it } from 'vitest';
import { fittingLines } from '../../../src/cli/commands/status.ts';
import { type JobReport, jobIn, type Report } from '../../../src/cli/show/status-report.ts';
import { detail, overview } from '../../../src/cli/show/status-table.ts';
import type { JobId, TaskId } from '../../../src/job.ts';
import { type JobInformation, jobTimeOf, shownJob, shownTask } from '../../../src/job-information.ts';
import { JOB } from '../../support/engine.ts';
import { ownState } from '../own-state.ts';

const FAILURE = { code: 'timeout', message: 'no answer', hint: null, since: 0 } as const;

function jobOf(jobId: string, state: JobReport['state'], more: Partial<JobReport> = {}): JobReport {
  const counts = { listed: 3, synced: 1, linked: 0, inFlux: 0, queued: 0, failed: 2, refused: 2, leftOut: 0, bytes: 0 };
  const results = { ...counts, directory: '/r', lastSync: null, transferMethod: null, notSynced: [], reasons: [] };
  const search = { found: 0, by: 'named', searching: false, searchedAt: null, nextSearchAt: null };
  const tasks = { ...search, hint: null, reported: [] };
  const times = { creationTime: null, submitTime: null, startTime: null, endTime: null };
  return {
    ...{ jobId, state, error: null, source: 'command', name: null, jobState: null, ...times, tasks },
    ...{
      jobStateSince: null,
      reportedAt: null,
      watchedAt: 0,
      polledAt: 0,
      grownAt: 0,
      stalledAt: null,
      pollAgeMs: null,
    },
    ...{ failures: 0, refusedEntries: 0, files: [], results },
    ...more,
  } as JobReport;
}

const reportOf = (jobs: readonly JobReport[]) => ({
  agent: { running: true, pid: 1 },
  outage: null,
  jobService: null,
  watchMine: null,
  notify: { rules: 0, waiting: 0, givenUp: 0, oldestAt: null },
  jobs,
});

it('the poll age of a job counts from the last poll that the service answered, whatever else fails', async () => {
  const { config, store } = await ownState();
  const order = { tasks: null, files: [], results: true, settleAfterMs: null, source: 'command' } as const;
  store.jobs.watch({ ...order, jobId: JOB }, 0);
  const ages = (['fault', 'timeout'] as const).map((code) => {
    const end = { polledAt: Date.now(), grownAt: null, refused: 0, failures: 1 };
    store.jobs.endRun(JOB, { ...end, error: { ...FAILURE, code } });
    return (jobIn(config, store, JOB)?.pollAgeMs ?? 0) > 60_000;
  });
  expect(ages).toEqual([false, true]);
});

it('a screen shows as many jobs as it has rows for, those that matter first, and counts the others', () => {
  const [failing, followed] = [jobOf('504', 'watched', { error: FAILURE }), jobOf('503', 'watched')];
  const settled = Array.from({ length: 100 }, (_, index) => jobOf(String(1000 + index), 'settled', { grownAt: index }));
  const report = reportOf([...settled, followed, failing]);
  const page = { jobs: 102, render: (maxJobs?: number) => overview(report, 100, maxJobs) };
  for (const rows of [9, 12, 24]) {
    const lines = fittingLines(page, rows);
    expect(lines.length).toBeLessThanOrEqual(rows);
    const shown = lines.flatMap((line) => /^\d+(?= )/.exec(line) ?? []);
    expect(shown.length).toBeGreaterThan(0);
    expect(['504', '503', '1099', '1098', '1097'].join().startsWith(shown.slice(0, 5).join())).toBe(true);
    expect(lines.at(-1)).toBe(`(${102 - shown.length} jobs more; every second; Ctrl-C ends)`);
  }
});

it('a page of two named jobs has the first alone where both do not fit, and its texts are safe', () => {
  const { results } = jobOf('501', 'watched');
  // As in a row of the database of a fleet.
  const lastSync = { way: '\u001b[2J', endedAt: 1, updatedAt: 1, done: 1, wanted: 1, bytes: 1, bytesPerSecond: 1 };
  const hostile = { ...results, lastSync: { ...lastSync, startedAt: 1, wantedBytes: null, fallback: null } };
  const report = reportOf([jobOf('501', 'watched', { results: hostile }), jobOf('502', 'watched')]);
  const lines = fittingLines({ jobs: 2, render: (maxJobs) => detail(report, 100, maxJobs) }, 7);
  expect(lines.at(-1)).toBe('(1 job more; every second; Ctrl-C ends)');
  expect(lines.join('\n')).toMatch(/^job 501: [\s\S]*by \\u\{001B\}\[2J$/m);
  expect(lines.join('\n')).not.toContain('502');
});

it('a job that runs has no end', () => {
  const endTime = jobTimeOf('0001-01-01T00:00:00');
  const times = { creationTime: null, submitTime: null, startTime: null, endTime };
  const task = { id: '9' as TaskId, name: null, state: 'Running', startTime: null, endTime, errorMessage: null };
  const job: JobInformation = { id: '5' as JobId, name: null, state: 'Running', ...times, tasks: [task] };
  expect(shownJob(job).endTime).toBeNull();
  expect(shownTask(task).endTime).toBeNull();
  expect(shownJob({ ...job, state: 'Finished' }).endTime).toBe(endTime);
  expect(shownTask({ ...task, state: 'Finished' }).endTime).toBe(endTime);
});

it('without an agent, no next attempt is promised; what the outage says is not repeated', () => {
  const error = { ...FAILURE, message: 'refused; next sign-in within 9 s', retryAt: Date.now() + 60_000 };
  const jobService = {
    at: 0,
    error,
    nextRequestAt: Date.now() + 60_000,
    waiting: 0,
  } as unknown as Report['jobService'];
  const report = { ...reportOf([jobOf('501', 'watched', { error })]), jobService };
  expect(overview(report, 200)).toMatch(/next attempt in/);
  const outage = { ...FAILURE, message: 'the service refuses: refused' };
  expect(overview({ ...report, outage }, 200)).not.toContain('job states are not reported');
  for (const page of [overview, detail])
    expect(page({ ...report, agent: { running: false, pid: null } }, 200)).not.toMatch(/next /);
});
