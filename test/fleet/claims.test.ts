/** Who takes a job, beside a client that places a command of it. */
import { expect, it } from 'vitest';
import { needsFleet } from '../support/fleet-node.ts';
import { FleetParts, orderFor } from '../support/fleet-parts.ts';

it('nothing is taken while a client places a command for one of the jobs, and nothing fails by it', {
  ...needsFleet(),
}, async () => {
  const fleet = await FleetParts.make();
  const { commands, claims } = await fleet.join('anna');
  await commands.give(
    [1, 2].map((number) => ({ jobId: orderFor(number).jobId, kind: 'watch', body: orderFor(number) })),
  );
  const session = await fleet.session();
  await session.query('BEGIN');
  await session.query(`SELECT 1 FROM jobtail.jobs WHERE job_id = '2' FOR UPDATE`);
  expect(await claims.take(2)).toEqual([]);
  await session.query('COMMIT');
  expect((await claims.take(2)).map(({ jobId }) => jobId).sort()).toEqual(['1', '2']);
});
