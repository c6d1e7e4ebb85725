/** An agent of the version before one lease an agent, beside one of this version: the rolling upgrade. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { needsFleet } from '../../support/fleet-node.ts';
import { FleetParts } from '../../support/fleet-parts.ts';

/** The database while an agent of 1c40ecf, anna, followed three jobs (pg_dump --inserts). */
const TABLES = new URL('../tables-of-1c40ecf.sql', import.meta.url);
const LEASE_MS = 6_000;

/** The statements of a heartbeat of 1c40ecf: pg-boss renews the leases of the jobs, then the agent its row. */
const TOUCH = `UPDATE jobtail_boss.job SET heartbeat_on = clock_timestamp() WHERE name = 'follow' AND state = 'active' RETURNING heartbeat_on AS at`;
const REPORT = `UPDATE jobtail.agents SET seen_at = now(), is_ended = false, lag_ms = 0, calls_last_minute = 0, is_draining = false
  WHERE name = 'anna' RETURNING drain_asked`;

it('the older agent loses its jobs before the newer one follows them, and each logs why', {
  ...PATIENCE,
  ...needsFleet(),
}, async () => {
  const fleet = await FleetParts.make();
  await fleet.query(fs.readFileSync(TABLES, 'utf8'));
  await fleet.query(`UPDATE jobtail.agents SET seen_at = now(), lease_ms = ${LEASE_MS}`);
  const anna = await fleet.session();
  let renewedAt = 0;
  /** The jobs that anna goes on with, as it beats. */
  const beat = async () => {
    const { rows } = await anna.query<{ at: Date }>(TOUCH);
    for (const { at } of rows) renewedAt = Math.max(renewedAt, at.getTime());
    return rows.length;
  };
  expect(await beat()).toBe(3);
  await anna.query(REPORT);

  const ben = fleet.start('ben', { heartbeatMs: LEASE_MS });
  let refusal: unknown;
  await until('the older agent to be refused', async () => {
    await beat();
    await anna.query(REPORT).catch((error: unknown) => {
      refusal = error;
    });
    return refusal !== undefined;
  });
  expect(await beat()).toBe(0);
  expect(String(refusal)).toContain('this agent is too old: install the newer version of jobtail');
  expect(ben.followed.size).toBe(0);

  await until('the newer agent to follow all', () => ben.followed.size === 3);
  const [taken] = await fleet.query<{ at: Date }>('SELECT min(taken_at) AS at FROM jobtail.jobs');
  expect((taken?.at.getTime() ?? 0) - renewedAt).toBeGreaterThanOrEqual(LEASE_MS);
  expect(ben.log.map(({ message }) => message)).toContain('agents of an older version follow no jobs');
  const how = await fleet.query(`SELECT DISTINCT how FROM jobtail.attempts WHERE agent = 'anna'`);
  expect(how).toEqual([{ how: 'lost' }]);
});
