/** A wall clock that is set back or forth: what is due and what is quiet goes by one that does not jump. */
import { describe, expect, it } from 'vitest';
import type { TaskId } from '../../../src/job.ts';
import { startJob } from '../../support/composed-agent.ts';
import { TASK } from '../../support/engine.ts';
import { ResultsPlace } from '../results/place.ts';

const MINUTE_MS = 60_000;
const YEAR_MS = 365 * 24 * 60 * MINUTE_MS;

describe('a job that settles after an hour without news', () => {
  it.each([
    ['the clock is set forth', 30, YEAR_MS, false],
    ['the clock is set back', 30, -YEAR_MS, false],
    ['the agent is started again', 50, 0, true],
    ['the clock is set back before a start', 0, -YEAR_MS, true],
  ])('does so after that hour, though %s', async (_, minutes, ms, isRestart) => {
    const { clock, job, restart, grown, ends } = await startJob({
      ...{ tasks: [TASK as TaskId], results: false, settleAfterMs: 60 * MINUTE_MS },
    });
    await grown();
    await clock.pass(minutes * MINUTE_MS);
    clock.stepWall(ms);
    if (isRestart) await restart();
    await clock.pass((59 - minutes) * MINUTE_MS);
    expect(job()?.state).toBe('watched');
    await ends(3 * MINUTE_MS);
  });
});

it('a result is looked at again, though the clock was set back since', async () => {
  const place = new ResultsPlace();
  place.remote.set('/11/a', 'before');
  await place.sync();
  place.remote.set('/11/a', 'after');
  place.now -= YEAR_MS;
  await place.sync();
  expect(place.read('11', 'a')).toBe('after');
  // Then at its intervals again.
  place.remote.downloads.length = 0;
  await place.sync();
  expect(place.remote.downloads).toEqual([]);
});
