/** What the log says of a service that wants to be left alone: each wait once, however many jobs meet it. */
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
  for (const job of [1, 2, 3]) failures.failed(`job ${job}`, busy, 2 * HOUR_MS + job * 1_000);
  failures.failed('job 1', busy);
  expect(said.splice(0)).toEqual([expect.stringContaining('"retryAt":"1970-01-01T02:00:01.000Z"')]);

  const { ofService } = failures;
  failures.failed('job 2', busy);
  failures.worked('job 1', ofService);
  expect(said).toEqual([]);
  failures.worked('job 1', failures.ofService);
  expect(said.splice(0)).toEqual([expect.stringContaining('operation recovered')]);
});
