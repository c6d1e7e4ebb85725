import { expect, it } from 'vitest';
import { Failures } from '../../../src/agent/failures.ts';
import { JobtailError } from '../../../src/errors.ts';

const HOUR_MS = 3_600_000;

it('a long wait is said once for all jobs, and again when another one follows it', () => {
  const said: string[] = [];
  const note = (fields: object, message?: string) => said.push(`${message} ${JSON.stringify(fields)}`);
  const failures = new Failures({ error: note, warn: note, info: note, debug: () => {} });
  const busy = new JobtailError('rate-limited', 'too many calls');
  failures.failed('job 1', busy);
  expect(said.splice(0)).toEqual([expect.not.stringContaining('retryAt')]);

  for (const job of [1, 2, 3]) failures.failed(`job ${job}`, busy, HOUR_MS + job * 1_000);
  expect(said.splice(0)).toEqual([expect.stringMatching(/^operation failed .*"retryAt":"1970-01-01T01:00:01.000Z"/)]);
  // A minute later at most, it is the same one.
  for (const ms of [61_000, 61_001]) failures.failed('job 1', busy, HOUR_MS + ms);
  failures.failed('job 1', busy);
  expect(said.splice(0)).toEqual([expect.stringContaining('"retryAt":"1970-01-01T01:01:01.001Z"')]);

  const { ofService } = failures;
  failures.failed('job 2', busy);
  failures.worked(ofService);
  expect(said).toEqual([]);
  failures.worked(failures.ofService);
  expect(said.splice(0)).toEqual([expect.stringMatching(/^operation recovered .*"failures":8}$/)]);
  failures.failed('job 1', busy, HOUR_MS);
  expect(said).toEqual([expect.stringContaining('"retryAt":"1970-01-01T01:00:00.000Z"')]);
});
