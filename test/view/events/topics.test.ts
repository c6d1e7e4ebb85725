import { expect, it } from 'vitest';
import type { JobId } from '../../../src/job.ts';
import type { Snapshots } from '../../../src/view/events/snapshots.ts';
import { jobTopic } from '../../../src/view/http/event-routes.ts';

type Shown = NonNullable<ReturnType<Snapshots['job']>>;

const JOB = '501' as JobId;

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
