/** One agent of a fleet by itself: what it takes, finishes and says. */
import { expect, it } from 'vitest';
import { PATIENCE, until } from '../support/e2e-until.ts';
import { needsFleet } from '../support/fleet-node.ts';
import { FleetParts, orderFor } from '../support/fleet-parts.ts';

it('an order that comes while a job is finished is fulfilled, and nothing fails by it', {
  ...PATIENCE,
  ...needsFleet(),
}, async () => {
  const fleet = await FleetParts.make();
  const { orders } = await fleet.join('command');
  const [{ jobId }, given] = [orderFor(1), [] as string[]];
  await orders.give([{ jobId, kind: 'watch', body: orderFor(1) }]);
  const { log, store, followed } = fleet.start('anna', {
    onRelease: async () => {
      if (given.length === 0) given.push(...(await orders.give([{ jobId, kind: 'resume' }])));
    },
  });
  await until('the job to be followed', () => followed.has(jobId));
  // What the agent does when all is proven.
  store.transaction(() => store.jobs.setState(jobId, 'settled'));
  await until('the order', () => given.length === 1);
  await until('its answer', async () => (await orders.answerOf(given[0] ?? '')) !== undefined);
  await until('the job to be followed again', () => followed.has(jobId));
  expect(store.jobs.get(jobId)?.state).toBe('watched');
  expect(log.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
});
