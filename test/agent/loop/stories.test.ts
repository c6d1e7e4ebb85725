/** What a job state, a failure, a command and a set clock lead to, as is written in the files of cases beside this one. */
import path from 'node:path';
import { it } from 'vitest';
import { expectCases } from '../../support/errors.ts';
import { followed } from './story.ts';

it.each([
  'clock-jumps',
  'deleted-jobs',
  'failing-end',
  'failure-log',
  'first-results',
  'job-states',
  'mine',
  'requests',
])('each step of a job requests, changes and logs what is written: %s', async (file) => {
  await expectCases(path.join(import.meta.dirname, `${file}.txt`), followed);
});
