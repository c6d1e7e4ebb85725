/** Which jobs wait for an owner, and who acquires them. */
import { type EventEmitter, once } from 'node:events';
import { expect, it } from 'vitest';
import { FleetClient } from '../../src/fleet/commands/client.ts';
import type { Queries } from '../../src/fleet/database/tables.ts';
import type { JobId } from '../../src/job.ts';
import { FleetParts, orderFor } from '../support/fleet-parts.ts';
import { needs } from '../support/needs.ts';

const PG = needs('postgres');

async function fleetWith(...jobs: readonly string[]) {
  const fleet = await FleetParts.make();
  const { commands, claims } = await fleet.join('anna');
  const orders = jobs.map(
    (jobId) => ({ jobId: jobId as JobId, kind: 'watch', body: orderFor(Number(jobId)) }) as const,
  );
  await commands.give(orders);
  const take = async () => (await claims.take(10)).map(({ jobId }) => jobId).sort();
  const waiting = async () =>
    (await fleet.query<{ id: string }>('SELECT job_id AS id FROM jobtail.jobs WHERE waiting_since IS NOT NULL')).map(
      ({ id }) => id,
    );
  return { fleet, commands, claims, take, waiting };
}

it('a job is skipped while a client places a command for it, and acquired afterwards', PG, async () => {
  const { fleet, take } = await fleetWith('1', '2');
  const session = await fleet.session();
  await session.query('BEGIN');
  await session.query(`SELECT 1 FROM jobtail.jobs WHERE job_id = '2' FOR UPDATE`);
  expect(await take()).toEqual(['1']);
  await session.query('COMMIT');
  expect(await take()).toEqual(['2']);
});

it('a job handed off waits for its next owner, one that is done for its next command', PG, async () => {
  const { commands, claims, take, waiting } = await fleetWith('1', '2');
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

it('a job with a malformed id is acquired by no agent, and waits no more', PG, async () => {
  const { take, waiting } = await fleetWith('1', '../OUT');
  expect(await take()).toEqual(['1']);
  expect(await waiting()).toEqual([]);
});

it('a rule wakes the agents of the fleet', PG, async () => {
  const { fleet } = await fleetWith();
  const session = await fleet.session();
  await session.query('LISTEN jobtail_orders');
  const heard = once(session as unknown as EventEmitter, 'notification');
  const client = await FleetClient.open(fleet.address);
  await client.setRule(undefined);
  expect(await heard).toMatchObject([{ channel: 'jobtail_orders' }]);
  await client.close();
});

it('a transaction that fails changes nothing, and nothing of it is in the next one', PG, async () => {
  const fleet = await FleetParts.make();
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

it('a transaction that stands still with the row of a job is ended by the server', PG, async () => {
  const { database } = await (await FleetParts.make()).join('anna');
  const name = 'idle_in_transaction_session_timeout';
  expect(await database.query(`SHOW ${name}`)).toEqual([{ [name]: '5s' }]);
});
