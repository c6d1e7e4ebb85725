/** Transactions of a fleet: whom they wait for, and what is left of one that fails. */
import { expect } from 'vitest';
import { idsOf } from '../../src/fleet/agents/agents.ts';
import type { Queries } from '../../src/fleet/database/tables.ts';
import { fleetTest } from '../support/fleet-parts.ts';

fleetTest('a job is skipped while a client places a command for it, and acquired afterwards', async (fleet) => {
  const { claims } = await fleet.ordered('anna', 1, 2);
  const session = await fleet.session();
  await session.query('BEGIN');
  await session.query(`SELECT 1 FROM jobtail.jobs WHERE job_id = '2' FOR UPDATE`);
  expect(idsOf(await claims.take(10))).toEqual(['1']);
  await session.query('COMMIT');
  expect(idsOf(await claims.take(10))).toEqual(['2']);
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
