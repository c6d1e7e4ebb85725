/** The jobs of the user that a fleet follows by a rule. */
import { expect, it } from 'vitest';
import { FleetRegister } from '../../src/fleet/fleet-register.ts';
import { FleetParts, orderFor } from '../support/fleet-parts.ts';
import { needs } from '../support/needs.ts';

it('many jobs are ordered some at a time, as many as the rule allows', needs('postgres'), async () => {
  const fleet = await FleetParts.make();
  const joined = await fleet.join('anna');
  const register = new FleetRegister(() => joined);
  const orders = Array.from({ length: 300 }, (_, index) => ({ ...orderFor(index + 1), source: 'mine' as const }));
  expect(await register.follow(orders, 250)).toBe(250);
  const given = await fleet.query<{ jobs: number }>(
    'SELECT count(*)::int AS jobs FROM jobtail.orders GROUP BY xmin::text ORDER BY jobs',
  );
  // By transaction.
  expect(given.map(({ jobs }) => jobs)).toEqual([50, 100, 100]);
  expect(await register.follow(orders, 250)).toBe(0);
});
