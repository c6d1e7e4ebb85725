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
  let now = 0;
  const parts = { store, database, claims, mirror: 'shared', bootId: null, monotonic: () => now, onLost: () => {} };
  const handover = new Handover(parts, store.noteChanges());
  store.transaction(() => [1, 2].map((number) => store.jobs.watch(orderFor(number), 0)));
  const second = jobs.filter(({ jobId }) => jobId === '2');
  expect(await handover.write(second)).toBe(false);
  expect(await fleet.query('SELECT DISTINCT job_id FROM jobtail.rows')).toEqual([{ job_id: '2' }]);

  // A poll that brings nothing is written now and then, and with whatever else changes.
  const polled = async (polledAt: number, error: string | null = null) => {
    const [{ jobId }] = [orderFor(2)];
    const trouble = error === null ? null : ({ code: 'fault', message: error, hint: null, since: 1 } as const);
    store.jobs.endVisit(jobId, { polledAt, grownAt: null, refused: 0, failures: 0, error: trouble });
    await handover.write(second);
    const [row] = await fleet.query<{ at: number; error: string | null }>(
      `SELECT (row ->> 'polled_at')::int AS at, row ->> 'error' AS error FROM jobtail.rows WHERE kind = 'jobs'`,
    );
    return row;
  };
  expect((await polled(1_000))?.at).toBeNull();
  expect((await polled(2_000, 'broken'))?.at).toBe(2_000);
  expect((await polled(3_000, 'broken'))?.at).toBe(2_000);
  expect((await polled(4_000))?.at).toBe(4_000);
  now += 4 * 60_000;
  expect((await polled(5_000))?.at).toBe(5_000);
  store.close();
});
