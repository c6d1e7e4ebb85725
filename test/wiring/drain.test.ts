/** What the whole daemon does when it has handed off its jobs. */
import { expect, test, vi } from 'vitest';
import { Transfers } from '../../src/daemon/transfers.ts';
import { FleetMember } from '../../src/fleet/member.ts';
import { Place } from '../support/e2e-place.ts';
import { runDaemon } from './whole-daemon.ts';

test('a daemon that another one asks to drain hands off its jobs, revokes its keys, and ends', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  place.configure(sandbox, { view: false, fleet: { url: 'postgresql://127.0.0.1:9/none', name: 'anna' } });
  context.onTestFinished(() => void vi.restoreAllMocks());
  // Its database is away: the order to drain comes at once.
  vi.spyOn(FleetMember.prototype, 'start').mockImplementation(function (this: FleetMember) {
    Object.assign(this, { ended: Promise.resolve() });
  });
  const drained = vi.spyOn(FleetMember.prototype, 'drain').mockResolvedValue();
  const revoked = vi.spyOn(Transfers.prototype, 'endAll');
  const { lines, said, running } = await runDaemon(place);
  await running;
  const messages = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
  expect([drained.mock.calls.length, revoked.mock.calls.length, messages.at(-1)]).toEqual([1, 1, 'stopped']);
  const STATUS = 'following 0 jobs, no connection to the database of the fleet';
  expect(said).toContainEqual({ READY: '1', STATUS });
  expect(said).toContainEqual({ STATUS: 'handing off the jobs to other agents' });
});
