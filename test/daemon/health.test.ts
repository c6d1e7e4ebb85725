import { expect, it, onTestFinished, vi } from 'vitest';
import { AgentHealth } from '../../src/daemon/health.ts';
import { JobtailError } from '../../src/errors.ts';
import { type Outage, outageIn, saveOutage } from '../../src/store/outage.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it('the health check reports since when the service fails, in words', () => {
  let now = 1_000;
  const directory = temporaryDirectory();
  const outages: (Outage | undefined)[] = [];
  const health = new AgentHealth(
    () => now,
    (outage) => {
      outages.push(outage);
      saveOutage(directory, outage);
    },
  );
  expect(health.failure).toBeUndefined();
  health.note('unreachable');
  now += 60_000;
  expect(health.unhealthy()).toBe('the scheduler made no progress for 60 s');
  const wall = vi.spyOn(Date, 'now').mockImplementation(() => 7);
  onTestFinished(() => wall.mockRestore());
  health.note('timeout');
  expect(outages.map((outage) => outage?.since)).toEqual([outages[0]?.since, outages[0]?.since]);
  expect(health.failure).toEqual({ text: 'the service does not answer', forMs: 60_000 });
  health.note('aborted');
  expect(health.failure).toMatchObject({ forMs: 60_000 });
  // A refusal is an answer.
  health.note('fault');
  expect(health.failure).toBeUndefined();
  health.note('sign-in-refused', new JobtailError('sign-in-refused', 'wrong password', { hint: 'check it' }));
  const message = 'the service refuses the sign-in: wrong password';
  expect(health.failure).toEqual({ text: 'the service refuses the sign-in', forMs: 0 });
  expect(outageIn(directory)).toMatchObject({ code: 'sign-in-refused', message, hint: 'check it' });
  health.note('ok');
  expect(health.failure).toBeUndefined();
  expect(outageIn(directory)).toBeUndefined();
});
