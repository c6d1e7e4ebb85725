/** An agent of version 0.2.0 beside one of this version: the rolling upgrade. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { fleetKey } from '../../../src/fleet/rows/border.ts';
import { until } from '../../support/e2e-until.ts';
import { FleetParts } from '../../support/fleet-parts.ts';
import { needs } from '../../support/needs.ts';

const TABLES = fs.readFileSync(new URL('../tables-of-0.2.0.sql', import.meta.url), 'utf8');
const LEASE_MS = 6_000;

/** What an agent of 0.2.0 sends: a heartbeat, and a job that it hands off. */
const REPORT = `UPDATE jobtail.agents SET seen_at = now(), is_ended = false, lag_ms = 0, calls_last_minute = 0, is_draining = false,
  capacity = 10, lacks = NULL, not_followed = 0 WHERE name = 'anna' AND instance = 'first' RETURNING seen_at AS at`;
const HAND_OFF = `BEGIN; UPDATE jobtail.jobs SET owner = NULL WHERE job_id = '1';
  INSERT INTO jobtail_boss.job VALUES ('waiting', '1', now()); COMMIT`;

it('no waiting job is lost, and the older agent loses its jobs before the newer one follows them', {
  ...needs('postgres'),
}, async () => {
  const fleet = await FleetParts.make();
  await fleet.query(TABLES);
  const anna = await fleet.session();
  const beat = async () => (await anna.query<{ at: Date }>(REPORT)).rows[0]?.at.getTime() ?? 0;
  let renewedAt = await beat();

  const ben = fleet.start('ben', { heartbeatMs: LEASE_MS });
  let refusal: unknown;
  await until('the older agent to be refused', async () => {
    await beat().then(
      (at) => {
        renewedAt = at;
      },
      (error: unknown) => {
        refusal = error;
      },
    );
    return refusal !== undefined;
  });
  expect(String(refusal)).toContain('this agent is too old: install the newer version of jobtail');
  await expect(anna.query(HAND_OFF)).rejects.toThrow('jobtail_boss.job');
  await anna.query('ROLLBACK');

  await until(
    'the waiting jobs to be followed',
    () => ben.followed.has('3' as never) && ben.followed.has('5' as never),
  );
  await until('the jobs of the older agent to be followed', () => ben.followed.size === 4);
  expect(ben.followed.has('4' as never)).toBe(false);
  const [taken] = await fleet.query<{ at: Date }>(
    `SELECT min(taken_at) AS at FROM jobtail.jobs WHERE job_id IN ('1', '2')`,
  );
  expect((taken?.at.getTime() ?? 0) - renewedAt).toBeGreaterThanOrEqual(LEASE_MS);
  expect(await fleet.query(`SELECT DISTINCT how FROM jobtail.attempts WHERE agent = 'anna'`)).toEqual([
    { how: 'lost' },
  ]);
});

it('upgraded tables are those of a new fleet', needs('postgres'), async () => {
  const [fresh, upgraded] = [await FleetParts.make(), await FleetParts.make()];
  await upgraded.query(TABLES);
  const tablesOf = async (fleet: FleetParts) => {
    await fleet.join('command');
    return [
      await fleet.query(`SELECT table_name, column_name, data_type, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema LIKE 'jobtail%' ORDER BY 1, 2`),
      await fleet.query(`SELECT indexdef FROM pg_indexes WHERE schemaname LIKE 'jobtail%' ORDER BY 1`),
      await fleet.query(`SELECT conrelid::regclass::text AS of, pg_get_constraintdef(oid) AS text FROM pg_constraint
        WHERE connamespace = 'jobtail'::regnamespace ORDER BY 1, 2`),
      await fleet.query(
        `SELECT relname, reloptions FROM pg_class WHERE relnamespace = 'jobtail'::regnamespace ORDER BY 1`,
      ),
    ];
  };
  expect(await tablesOf(upgraded)).toEqual(await tablesOf(fresh));
});

it('upgraded rows have the names and keys of this version', needs('postgres'), async () => {
  const fleet = await FleetParts.make();
  await fleet.query(TABLES);
  await fleet.join('command');
  const rows = await fleet.query(
    `SELECT row FROM jobtail.rows WHERE kind NOT IN ('jobs', 'result_files') ORDER BY kind`,
  );
  expect(rows).toEqual([
    { row: { job_id: '3', information: '{"told_at":1}', since: 1, reported_at: 8 } },
    { row: { job_id: '4', state: 'left-out', kept: 0, without_row: 9, bytes: 0 } },
    { row: { job_id: '3', files: '["stdout"]', searched_at: 7, next_search_at: null } },
  ]);
  expect(await fleet.query(`SELECT rule ->> 'maxJobs' AS jobs FROM jobtail.rules`)).toEqual([{ jobs: '6' }]);
  const [result] = await fleet.query(`SELECT key FROM jobtail.rows WHERE kind = 'result_files'`);
  expect(result).toEqual({ key: fleetKey(JSON.stringify(['"ü'.repeat(700)])) });
});
