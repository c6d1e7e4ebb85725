/** What is kept of long texts of a response takes no more memory than it counts. */
import { setFlagsFromString } from 'node:v8';
import vm from 'node:vm';
import { expect, it } from 'vitest';
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
