/** The tasks of a job as rows: what failed, what is opened first, what the filter finds. */
import { describe, expect, it } from 'vitest';
import type { TaskId } from '../../../../src/job.ts';
import type { ShownTask } from '../../../../src/job-information.ts';
import type { FileState, JobDetail } from '../../../../src/view/contract/events.ts';
import { NO_RESULTS } from '../../../../src/view/events/jobs.ts';
import { firstOf, matches, ordered, taskRows } from '../../../../src/view/page/job/tasks.ts';
import { jobSummary } from '../../../support/view-models.ts';

const task = (taskId: string, taskState: string | null, errorMessage: string | null = null): ShownTask => ({
  ...{ taskId: taskId as TaskId, taskState, errorMessage, name: `part ${taskId}`, startTime: null, endTime: null },
});

const file = (taskId: string, name: FileState['file'], bytes = 0, grownAt: number | null = null): FileState => ({
  ...{ taskId, file: name, bytes, grownAt, version: 'g1', generation: 1 },
  ...{ verified: false, unproven: null, error: null },
});

const job = (...reported: ShownTask[]): JobDetail => ({
  ...jobSummary('501'),
  tasks: { found: 0, searching: false, hint: null, reported },
  results: { ...NO_RESULTS, lastSync: null, arriving: [] },
  unproven: null,
});

const ALL = ['stdout', 'stderr', 'log', 'progress'] as const;
const filesOf = (taskId: string, lengths: Partial<Record<FileState['file'], number>> = {}) =>
  ALL.map((name) => file(taskId, name, lengths[name]));

describe('the tasks of a job', () => {
  const rows = taskRows(
    job(task('9', 'Finished'), task('10', 'Running'), task('11', 'Failed'), task('12', 'Finished', 'out of memory')),
    [file('9', 'stdout', 5, 60_000), file('9', 'log', 7, 600_000), file('13', 'stdout', 90, 1)],
  );

  it('are those with files and those that are reported, each with what its files are together', () => {
    expect(rows.map(({ taskId }) => taskId)).toEqual(['9', '13', '10', '11', '12']);
    expect(rows[0]).toMatchObject({ bytes: 12, grownAt: 600_000, group: 'finished' });
  });

  it('are sorted: what failed first, or by any other column', () => {
    const by = (name: 'task' | 'state' | 'grown' | 'size', isDown: boolean) =>
      ordered(rows, { by: name, isDown }).map(({ taskId }) => taskId);
    expect(by('state', false)).toEqual(['11', '12', '10', '13', '9']);
    expect(by('task', true)).toEqual(['13', '12', '11', '10', '9']);
    expect(by('size', true).slice(0, 2)).toEqual(['13', '9']);
    expect(by('grown', true).slice(0, 2)).toEqual(['9', '13']);
  });

  it.each([
    ['11', ['11']],
    ['part running', ['10']],
    ['MEMORY', ['12']],
    ['', ['9', '13', '10', '11', '12']],
  ])('are found by %j', (filter, found) => {
    expect(rows.filter((row) => matches(row, filter)).map(({ taskId }) => taskId)).toEqual(found);
  });
});

describe('the file that is opened first', () => {
  it('is the standard error of what failed', () => {
    const files = [...filesOf('1', { stdout: 9 }), ...filesOf('2', { stdout: 9, stderr: 9 }), ...filesOf('3')];
    const rows = taskRows(job(task('1', 'Finished'), task('2', 'Failed'), task('3', 'Failed')), files);
    expect(firstOf(rows)).toEqual({ taskId: '2', file: 'stderr' });
  });

  it('is what failed and wrote something, in the order of the usual reading', () => {
    const rows = taskRows(job(task('1', 'Finished'), task('2', 'Failed')), [
      ...filesOf('1', { stdout: 9 }),
      ...filesOf('2', { log: 9 }),
    ]);
    expect(firstOf(rows)).toEqual({ taskId: '2', file: 'log' });
  });

  it('is one that is not empty, else the standard output', () => {
    expect(firstOf(taskRows(undefined, [...filesOf('1'), ...filesOf('2', { log: 1 })]))).toEqual({
      taskId: '2',
      file: 'log',
    });
    expect(firstOf(taskRows(job(task('2', 'Failed')), filesOf('1')))).toEqual({ taskId: '1', file: 'stdout' });
    expect(firstOf(taskRows(job(task('2', 'Failed')), []))).toBeUndefined();
  });
});
