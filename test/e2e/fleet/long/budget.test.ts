/** One budget of calls for all agents of one service and user. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { PATIENCE } from '../../../support/e2e-until.ts';
import { Fleet } from '../../../support/fleet.ts';
import { expectEqual, maxCallsWithin } from '../../../support/fleet-proof.ts';
import { needs } from '../../../support/needs.ts';

const PER_MINUTE = 300;
const WINDOW_MS = 6_000;
/** Calls are spaced by the agents and counted by the service: some arrive together that were not sent together. */
const SLACK = 6;

it.concurrent('the budget of calls holds for all agents together', {
  ...PATIENCE,
  ...needs('postgres'),
}, async (context) => {
  const fleet = await Fleet.make(context, { jobs: 30, sections: { service: { requestsPerMinute: PER_MINUTE } } });
  await fleet.runSpread();
  for (let second = 0; second < 20; second++) {
    fleet.grow(1);
    await sleep(1_000);
  }
  await expectEqual(fleet);
  const most = maxCallsWithin(await fleet.sandbox.calls(), WINDOW_MS);
  const allowed = (PER_MINUTE * WINDOW_MS) / 60_000;
  process.stdout.write(`at most ${most} calls in ${WINDOW_MS / 1_000} s, of ${allowed}\n`);
  expect(most).toBeLessThanOrEqual(allowed + SLACK);
  // It is used, too.
  expect(most).toBeGreaterThan(allowed / 2);
});
