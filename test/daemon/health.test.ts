import { expect, it, onTestFinished, vi } from 'vitest';
import { AgentHealth, observing } from '../../src/daemon/health.ts';
import { JobtailError } from '../../src/errors.ts';
import type { JobId } from '../../src/job.ts';
import { type Outage, outageIn, saveOutage } from '../../src/store/outage.ts';
import { Store } from '../../src/store/store.ts';
import { AgentCounts } from '../../src/view/events/figures.ts';
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
  // An outage that goes on is stored once.
  for (let times = 0; times < 2; times++) health.note('timeout');
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

it('the status names what fails, what grew, and what is refused', () => {
  let now = 0;
  const store = new Store({ directory: temporaryDirectory(), service: 'x', owner: true, now: () => 0 });
  const health = new AgentHealth(() => now);
  const counts = new AgentCounts();
  const observer = observing(health, counts);
  const text = (jobs = 2) => health.text(jobs, store);
  expect([health.unready(), text(1)]).toEqual(['the first sign-in has not ended', 'following 1 job']);
  health.isReady = true;
  expect([health.unready(), text()]).toEqual([undefined, 'following 2 jobs']);
  const wall = vi.spyOn(Date, 'now').mockImplementation(() => 10_000);
  onTestFinished(() => wall.mockRestore());
  const order = { tasks: [], files: [], results: true, settleAfterMs: null, source: 'command' } as const;
  const jobId = '501' as JobId;
  store.jobs.watch({ ...order, jobId }, 1);
  const error = { code: 'fault', message: 'no', hint: null, since: 1 } as const;
  store.jobs.endRun(jobId, { polledAt: 1, grownAt: 5_000, refused: 0, failures: 1, error });
  expect(text()).toBe('following 2 jobs, last growth 5 s ago, 1 failing (agent status)');
  observer.emit('call', { operation: 'A', outcome: 'timeout', durationMs: 1, bytes: 2 });
  observer.emit('appended', 5);
  const refusal = new JobtailError('sign-in-refused', 'wrong password');
  observer.emit('signIn', { kind: 'failed', error: refusal, tookMs: 1 });
  const failures = { 'does not answer': 1, 'refuses the sign-in': 1 };
  expect(counts).toMatchObject({ bytes: 5, calls: { A: 1 }, failures });
  now += 59_999;
  health.refused = 'line 3';
  health.view = 'the view is not served';
  const verdicts = 'the changed configuration is refused: line 3, the view is not served';
  const since = 'the service refuses the sign-in since 60 s, following 2 jobs';
  expect([health.unready(), health.unhealthy()]).toEqual(['the service refuses the sign-in', undefined]);
  expect(text()).toBe(`${since}, last growth 5 s ago, ${verdicts}`);
  store.close();
  expect(text()).toBe(`${since}, the state cannot be read, ${verdicts}`);
  observer.emit('signIn', { kind: 'signed-in', grant: 'session', tookMs: 1 });
  now += 1;
  expect(health.unready()).toBe('the scheduler made no progress for 60 s');
  health.turned();
  expect([health.unready(), counts.failures]).toEqual([undefined, failures]);
});
