/** One budget for all calls, while the database cannot be asked. */
import { expect, it, onTestFinished } from 'vitest';
import { Budget } from '../../../src/fleet/budget.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { PATIENCE } from '../../support/e2e-until.ts';
import { FleetParts } from '../../support/fleet-parts.ts';
import { needs } from '../../support/needs.ts';

const CALLS = 20;
/** Longer than the database is waited for once, and a share of the minute for each call; twice would be longer. */
const LONGEST_MS = 7_500;

it('a database that falls silent is asked once, and the calls go on by the share of this agent', {
  ...PATIENCE,
  ...needs('postgres'),
}, async () => {
  const fleet = await FleetParts.make();
  const relay = await fleet.relay();
  const { database } = await fleet.join('anna', relay.port);
  const budget = new Budget({ name: 'service', callsPerMinute: 1_200, clock: systemClock });
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

/** A budget by a clock of its own, and what it asks of the database. */
async function budgetOf(callsPerMinute: number) {
  const fleet = await FleetParts.make();
  const { database } = await fleet.join('anna');
  const figures = { asked: 0, mostAheadMs: 0 };
  let now = 0;
  const budget = new Budget({ name: 'service', callsPerMinute, clock: { ...systemClock, monotonic: () => now } });
  const counted = {
    query: <Row>(text: string, values: readonly unknown[] = []) => {
      figures.asked += 1;
      figures.mostAheadMs = Math.max(figures.mostAheadMs, Number(values[1]));
      return database.query<Row>(text, values);
    },
  };
  budget.use(counted, 1);
  const call = async (count: number, everyMs: number) => {
    for (let calls = 0; calls < count; calls++) {
      await budget.take(new AbortController().signal);
      now += everyMs;
    }
  };
  return { figures, call, budget };
}

it('a budget that is far from used is asked for once in some seconds', {
  ...PATIENCE,
  ...needs('postgres'),
}, async () => {
  const { figures, call } = await budgetOf(1_000_000);
  await call(600, 100);
  figures.asked = 0;
  await call(200, 100);
  expect(figures.asked).toBeGreaterThan(0);
  expect(figures.asked).toBeLessThan(10);
});

it('an agent takes no more slots at once than half a second of the budget', {
  ...PATIENCE,
  ...needs('postgres'),
}, async () => {
  const { figures, budget } = await budgetOf(6_000);
  await Promise.all(Array.from({ length: 200 }, () => budget.take(new AbortController().signal)));
  expect(figures.mostAheadMs).toBe(500);
});
