/** One budget for all calls, while the database cannot be asked. */
import { expect, it, onTestFinished } from 'vitest';
import { Budget } from '../../src/fleet/budget.ts';
import { PATIENCE } from '../support/e2e-until.ts';
import { needsFleet } from '../support/fleet-node.ts';
import { FleetParts } from '../support/fleet-parts.ts';

const CALLS = 20;
/** Longer than the database is waited for once, and a share of the minute for each call; twice would be longer. */
const LONGEST_MS = 7_500;

it('a database that falls silent is asked once, and the calls go on by the share of this agent', {
  ...PATIENCE,
  ...needsFleet(),
}, async () => {
  const fleet = await FleetParts.make();
  const relay = await fleet.relay();
  const { database } = await fleet.join('anna', relay.port);
  const budget = new Budget({ name: 'service', callsPerMinute: 1_200, monotonic: () => performance.now() });
  budget.use(database, 1);
  const { signal } = new AbortController();
  await budget.take(signal);
  relay.silence();
  onTestFinished(() => relay.cut());
  const from = performance.now();
  await Promise.all(Array.from({ length: CALLS }, () => budget.take(signal)));
  expect(performance.now() - from).toBeLessThan(LONGEST_MS);
  expect([budget.calls, budget.callsLastMinute]).toEqual([CALLS + 1, CALLS + 1]);
});
