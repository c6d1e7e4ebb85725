/** What is kept of long texts of a response takes no more memory than it counts. */
import { setFlagsFromString } from 'node:v8';
import vm from 'node:vm';
import { expect, it } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import type { JobId } from '../../../src/job.ts';
import { JobRecords } from '../../../src/remote/content/job-records.ts';
import type { Fields, Value } from '../../../src/remote/content/values.ts';

setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc') as () => void;

function heapBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

it('a list of jobs with long names keeps their beginnings alone', () => {
  const records = new JobRecords();
  const before = heapBytes();
  for (let id = 1; id <= 20; id++) {
    const long = Buffer.alloc(1024 * 1024, `${id} €`).toString();
    const task: Fields = new Map([
      ['id', `${id}`],
      ['name', long],
      ['errormessage', long],
    ]);
    records.add(
      new Map<string, Value>([
        ['id', `${id}`],
        ['name', ` ${long}`],
        ['state', long],
        ['tasks', [task]],
      ]),
    );
  }
  // 20 names, states, names of tasks and messages of 4,096 characters, two bytes each.
  expect(heapBytes() - before).toBeLessThan(4 * 1024 * 1024);
  expect(records.jobs).toHaveLength(20);
  expect(records.jobs[0]?.name).toHaveLength(4_095);
});

it('no more than a hundred thousand jobs are kept of a list', () => {
  const records = new JobRecords();
  for (let id = 1; id <= 100_050; id++) records.add(new Map([['id', `${id}`]]));
  expect(records.jobs).toHaveLength(100_000);
});

it('of a job are kept ten thousand tasks, each once, and of a repeated element the first one', () => {
  const records = new JobRecords('501' as JobId);
  const ids = [...Array.from({ length: 10_050 }, (_, index) => `${index + 1}`), '1', 'x', ''];
  const tasks = ids.map(
    (id, index) =>
      new Map<string, Value>([
        ['id', id],
        ['name', `n${index}`],
      ]),
  );
  const job: Fields = new Map<string, Value>([
    ['state', [' Running ', 'Failed']],
    ['name', '  '],
    ['tasks', tasks],
  ]);
  records.add(job);
  records.add(new Map(job).set('state', 'another record of the same job'));
  const found = records.only(() => new JobtailError('internal', 'it is another one'));
  expect(found).toMatchObject({ id: '501', state: 'Running', name: null });
  expect(found.tasks).toHaveLength(10_000);
  expect(found.tasks[0]).toMatchObject({ id: '1', name: 'n0' });
  expect(records.jobs).toHaveLength(1);
});
