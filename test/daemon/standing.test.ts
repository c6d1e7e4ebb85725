import { expect, it } from 'vitest';
import { Standing } from '../../src/daemon/standing.ts';

it('knows since when the service fails, in words', () => {
  let now = 1_000;
  const standing = new Standing(() => now);
  expect(standing.failure).toBeUndefined();
  standing.note('unreachable');
  now += 60_000;
  standing.note('timeout');
  expect(standing.failure).toEqual({ text: 'the service does not answer', forMs: 60_000 });
  standing.note('aborted');
  expect(standing.failure).toMatchObject({ forMs: 60_000 });
  // A refusal is an answer.
  standing.note('fault');
  expect(standing.failure).toBeUndefined();
  standing.note('sign-in-refused');
  expect(standing.failure).toEqual({ text: 'the service refuses the sign-in', forMs: 0 });
  standing.note('ok');
  expect(standing.failure).toBeUndefined();
});
