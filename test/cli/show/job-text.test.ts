/** What the middleware tells of jobs, in lines and tables for people. */
import { describe, expect, it } from 'vitest';
import { jobsTable } from '../../../src/cli/commands/jobs.ts';
import { jobStateChanges } from '../../../src/cli/show/job-text.ts';
import type { ListedJob } from '../../../src/cli/show/lists.ts';
import type { JobId, TaskId } from '../../../src/job.ts';
import { jobTimeOf, shownTask, type TaskInformation } from '../../../src/job-information.ts';

const JOB = '501' as JobId;
const NEVER = { creationTime: null, submitTime: null, startTime: null, endTime: null };

function taskOf(id: string, errorMessage: string | null = null): TaskInformation {
  return { id: id as TaskId, name: null, state: null, ...NEVER, errorMessage };
}

const listed = (job: Partial<ListedJob>): ListedJob => ({
  ...{ jobId: JOB, name: null, jobState: null, ...NEVER, watchState: null, tasks: [] },
  ...job,
});

const shown = (job: Partial<ListedJob>, columns = Number.POSITIVE_INFINITY) => jobsTable([listed(job)], columns);

describe('changes of a job state', () => {
  const row = (jobState: string | null, tasks: readonly TaskInformation[] = []) => ({
    ...{ jobId: JOB, jobState },
    tasks: { reported: tasks.map(shownTask) },
  });

  it('are said once each, and the end with its reasons', () => {
    const changes = jobStateChanges();
    expect(changes(undefined)).toBe('');
    expect(changes(row(null))).toBe('');
    expect(changes(row('Running', [taskOf('7', 'not yet')]))).toBe('job 501 is Running\n');
    expect(changes(row('Running'))).toBe('');
    const failed = Array.from({ length: 50 }, (_, index) => taskOf(String(index), 'gone'));
    const end = changes(row('Failed', [taskOf('99'), ...failed])).split('\n');
    expect(end.slice(0, 2)).toEqual(['job 501 is Failed; what it wrote last may still come', '  task 0: gone']);
    expect(end.length).toBeLessThan(10);
    expect(changes(row('Queued')), 'it was started again').toBe('job 501 is Queued\n');
  });
});

describe('the table of jobs', () => {
  it('names few tasks, and says how many there are', () => {
    const task = { name: null, taskState: null, startTime: null, endTime: null, errorMessage: 'x' };
    const tasks = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ ...task, taskId: String(9_001 + at) as TaskId }));
    expect(shown({ tasks: tasks(2) })).toContain('  9001 9002');
    const many = shown({ tasks: tasks(3_000) });
    expect(many).toContain('  9001 ... 12000 (3000)');
    expect(many).toContain('  job 501: 2997 messages more (agent jobs --json)\n');
    expect(many.length).toBeLessThan(2_000);
  });

  it('becomes lines where there is no room, and holds no name that is longer than its column', () => {
    const reported = { name: 'n'.repeat(500), jobState: 'Running', startTime: jobTimeOf('2026-03-01T12:00:00') };
    const narrow = shown({ ...reported, watchState: 'watched' }, 60);
    expect(narrow).toMatch(/^501 n+…\n {2}state Running; started 2026-03-01 12:00:00; followed\n {2}watched\n$/);
    expect(
      Math.max(
        ...shown(reported)
          .split('\n')
          .map(({ length }) => length),
      ),
    ).toBeLessThan(140);
    expect(jobsTable([], 80)).toBe('the middleware reports no job\n');
  });
});
