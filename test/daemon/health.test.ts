import { expect, it } from 'vitest';
import { AgentHealth } from '../../src/daemon/health.ts';

it('the health check reports since when the service fails, in words', () => {
  let now = 1_000;
  const health = new AgentHealth(() => now);
  expect(health.failure).toBeUndefined();
  health.note('unreachable');
  now += 60_000;
  health.note('timeout');
  expect(health.failure).toEqual({ text: 'the service does not answer', forMs: 60_000 });
  health.note('aborted');
  expect(health.failure).toMatchObject({ forMs: 60_000 });
  // A refusal is an answer.
  health.note('fault');
  expect(health.failure).toBeUndefined();
  health.note('sign-in-refused');
  expect(health.failure).toEqual({ text: 'the service refuses the sign-in', forMs: 0 });
  health.note('ok');
  expect(health.failure).toBeUndefined();
});
