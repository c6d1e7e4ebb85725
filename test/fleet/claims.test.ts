/** Which jobs wait for an owner, and who acquires them. */
import { expect } from 'vitest';
import { idsOf } from '../../src/fleet/agents/agents.ts';
import type { Queries } from '../../src/fleet/database/tables.ts';
import type { JobId } from '../../src/job.ts';
import { type FleetParts, fleetTest } from '../support/fleet-parts.ts';

async function claimsOf(fleet: FleetParts) {
  const { commands, claims } = await fleet.ordered('anna', 1, 2);
  const take = async () => idsOf(await claims.take(10)).sort();
  const select = 'SELECT job_id AS "jobId" FROM jobtail.jobs WHERE waiting_since IS NOT NULL';
  const waiting = async () => idsOf(await fleet.query<{ jobId: JobId }>(select));
  return { commands, claims, take, waiting };
}

fleetTest('a job is skipped while a client places a command for it, and acquired afterwards', async (fleet) => {
  const { take } = await claimsOf(fleet);
  const session = await fleet.session();
  await session.query('BEGIN');
  await session.query(`SELECT 1 FROM jobtail.jobs WHERE job_id = '2' FOR UPDATE`);
  expect(await take()).toEqual(['1']);
  await session.query('COMMIT');
  expect(await take()).toEqual(['2']);
});

fleetTest('a job handed off waits for its next owner, one that is done for its next command', async (fleet) => {
  const { commands, claims, take, waiting } = await claimsOf(fleet);
  await take();
  const [first, second] = await claims.owned();
  await claims.fenced([first as never], (sql, jobs) => claims.end(sql, jobs, 'handed-over'));
  await claims.fenced([second as never], (sql, jobs) => claims.end(sql, jobs, 'done'));
  expect(await waiting()).toEqual([first?.jobId]);
  await commands.give([{ jobId: second?.jobId as JobId, kind: 'resume' }]);
  expect(await take()).toEqual(['1', '2']);
  // Commands for jobs with an owner change nothing of that.
  await commands.give([{ jobId: '1' as JobId, kind: 'sync' }]);
  expect(await waiting()).toEqual([]);
});

fleetTest('a transaction that fails changes nothing, and nothing of it is in the next one', async (fleet) => {
  const { database } = await fleet.join('anna');
  const failures = [(sql: Queries) => sql.query('SELECT 1 / 0'), () => Promise.reject(new Error('it cannot be read'))];
  for (const fail of failures) {
    const failed = database.transaction(async (sql) => {
      await sql.query(`INSERT INTO {s}.rules (rule) VALUES ('{}')`);
      await fail(sql);
    });
    await expect(failed).rejects.toThrow(/division by zero|cannot be read/);
    expect(await database.transaction((sql) => sql.query('SELECT rule FROM {s}.rules'))).toEqual([]);
  }
  expect(await fleet.query('SELECT rule FROM jobtail.rules')).toEqual([]);
});

fleetTest('a transaction that stands still with the row of a job is ended by the server', async (fleet) => {
  const { database } = await fleet.join('anna');
  const name = 'idle_in_transaction_session_timeout';
  expect(await database.query(`SHOW ${name}`)).toEqual([{ [name]: '5s' }]);
});
