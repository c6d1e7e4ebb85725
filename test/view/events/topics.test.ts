import { expect, it } from 'vitest';
import type { JobId, LiveFileName, TaskId } from '../../../src/job.ts';
import type { Snapshots } from '../../../src/view/events/snapshots.ts';
import { jobTopic } from '../../../src/view/http/event-routes.ts';

type Shown = NonNullable<ReturnType<Snapshots['job']>>;

const JOB = '501' as JobId;

it('the files of a job: all at first, then what changed, and all again when one is gone', () => {
  let now: Shown | undefined;
  const topic = jobTopic({ isComplete: true, job: () => now }, JOB);
  const show = (...files: readonly (readonly [LiveFileName, number])[]) => {
    const states = files.map(([file, bytes]) => ({ taskId: '9001' as TaskId, file, bytes }));
    now = { detail: { jobId: JOB }, files: states } as unknown as Shown;
    return topic().flatMap(([name, data]) => (name === 'files' ? [{ whole: data.whole, files: data.files }] : []));
  };
  expect(show(['stdout', 1], ['stderr', 1])).toMatchObject([
    { whole: true, files: [{ file: 'stdout' }, { file: 'stderr' }] },
  ]);
  expect(show(['stdout', 2], ['stderr', 1])).toMatchObject([{ whole: false, files: [{ file: 'stdout', bytes: 2 }] }]);
  expect(show(['stdout', 2])).toMatchObject([{ whole: true, files: [{ file: 'stdout' }] }]);
  expect(show(['stdout', 2])).toEqual([]);
  expect(show(['log', 1])).toMatchObject([{ whole: true, files: [{ file: 'log' }] }]);
  expect(show(['stdout', 2])).toMatchObject([{ whole: true, files: [{ file: 'stdout' }] }]);
  expect(show()).toMatchObject([{ whole: true, files: [] }]);
  expect(show(['stdout', 2])).toMatchObject([{ whole: false, files: [{ file: 'stdout' }] }]);
});

it('a job that is missing is reported once, and again when it was followed meanwhile', () => {
  let [now, isComplete]: [Shown | undefined, boolean] = [undefined, false];
  const topic = jobTopic(
    {
      get isComplete() {
        return isComplete;
      },
      job: () => now,
    },
    JOB,
  );
  const names = () => topic().map(([name]) => name);
  expect(names()).toEqual([]);
  isComplete = true;
  for (let times = 1; times <= 2; times++) {
    now = undefined;
    expect([names(), names()]).toEqual([['missing'], []]);
    now = { detail: { jobId: JOB }, files: [] } as unknown as Shown;
    expect([names(), names()]).toEqual([['job', 'files'], []]);
  }
});
