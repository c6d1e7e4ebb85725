/** The turn of the agent, by which the watchdog of systemd sees that it works. */
import { expect, it, vi } from 'vitest';
import { Calls } from '../../../src/agent/calls.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { ModelRemote } from '../../support/model-remote.ts';

it('the agent reports no turn while the queue of calls makes no progress', async () => {
  const clock = new HeldClock();
  const { agent } = await startAgent(new ModelRemote(), { clock });
  let turns = 0;
  agent.onTurn(1_000, () => {
    turns += 1;
  });
  await clock.pass(10_000);
  expect(turns).toBeGreaterThan(5);
  const stalled = vi.spyOn(Calls.prototype, 'stalled', 'get').mockReturnValue(true);
  const before = turns;
  await clock.pass(60_000);
  expect(turns).toBe(before);
  stalled.mockRestore();
  await clock.pass(10_000);
  expect(turns).toBeGreaterThan(before + 5);
});
