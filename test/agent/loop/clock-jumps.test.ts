/** A wall clock that is set back or forth: what is due and what is quiet goes by one that does not jump. */
import { describe, expect, it } from 'vitest';
import { keyText, type TaskId } from '../../../src/job.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { JOB, STDOUT, TASK } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { ResultsPlace } from '../results/place.ts';

const MINUTE_MS = 60_000;
const YEAR_MS = 365 * 24 * 60 * MINUTE_MS;

/** Follows a job that is to settle after an hour without news; it reports nothing. */
async function follow() {
  const clock = new HeldClock();
  const remote = new ModelRemote();
  remote.files.set(keyText(STDOUT), Buffer.from('a line\n'));
  const { store, restart, watch } = await startAgent(remote, { clock, sections: 'results: {enabled: false}\n' });
  watch({ tasks: [TASK as TaskId], results: false, settleAfterMs: 60 * MINUTE_MS });
  await clock.passUntil('the first bytes', () => store.jobs.get(JOB)?.grownAt != null);
  const state = () => store.jobs.get(JOB)?.state;
  return { clock, state, restart };
}

describe('a job that settles after an hour without news', () => {
  it.each([
    ['forth', YEAR_MS],
    ['back', -YEAR_MS],
  ])('does so after that hour, though the clock is set %s', async (_, ms) => {
    const { clock, state } = await follow();
    await clock.pass(30 * MINUTE_MS);
    clock.stepWall(ms);
    await clock.pass(29 * MINUTE_MS);
    expect(state()).toBe('watched');
    await clock.passUntil('its end', () => state() === 'settled', 3 * MINUTE_MS);
  });

  it('was quiet before a restart, too', async () => {
    const { clock, state, restart } = await follow();
    await clock.pass(50 * MINUTE_MS);
    await restart();
    await clock.pass(5 * MINUTE_MS);
    expect(state()).toBe('watched');
    await clock.passUntil('its end', () => state() === 'settled', 7 * MINUTE_MS);
  });

  it('was not quiet for less than nothing, if the clock was set back before a restart', async () => {
    const { clock, state, restart } = await follow();
    clock.stepWall(-YEAR_MS);
    await restart();
    await clock.pass(59 * MINUTE_MS);
    expect(state()).toBe('watched');
    await clock.passUntil('its end', () => state() === 'settled', 3 * MINUTE_MS);
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
