/** What an owner writes of its jobs for the next one. */
import { expect, it } from 'vitest';
import { Handover } from '../../src/fleet/handover.ts';
import { Store } from '../../src/store/store.ts';
import { needsFleet } from '../support/fleet-node.ts';
import { FleetParts, orderFor } from '../support/fleet-parts.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it('some of the jobs are written, whatever waits of the others', { ...needsFleet() }, async () => {
  const fleet = await FleetParts.make();
  const { orders, claims, database } = await fleet.join('anna');
  await orders.give([1, 2].map((number) => ({ jobId: orderFor(number).jobId, kind: 'watch', body: orderFor(number) })));
  const jobs = await claims.take(2);
  const store = new Store({ directory: temporaryDirectory(), service: '', owner: true, now: Date.now });
  const parts = { store, database, claims, mirror: 'shared', bootId: null, onLost: () => {} };
  const handover = new Handover(parts, store.noteChanges());
  store.transaction(() => [1, 2].map((number) => store.jobs.watch(orderFor(number), 0)));
  const second = jobs.filter(({ jobId }) => jobId === '2');
  expect(await handover.write(second)).toBe(false);
  expect(await fleet.query('SELECT DISTINCT job_id FROM jobtail.rows')).toEqual([{ job_id: '2' }]);
  store.close();
});
