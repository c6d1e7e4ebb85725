/** What a fleet is for: an agent dies, and the others go on where it was. */
import { expect, it } from 'vitest';
import { Fleet } from '../../../support/fleet.ts';
import { expectEqual, expectSound } from '../../../support/fleet-files.ts';
import { needs } from '../../../support/needs.ts';

/** From the death of an agent to the last of its jobs having another owner. */
const TAKEOVER_MS = 30_000;

it('a fleet takes over the jobs of an agent that is killed', needs('postgres'), async (context) => {
  const fleet = await Fleet.make(context, { jobs: 30 });
  fleet.grow();
  await fleet.run();
  await fleet.untilEqual();
  await fleet.untilSpread();

  const before = await fleet.owners();
  fleet.grow();
  await fleet.agent('ben').kill();
  const killedAt = performance.now();
  fleet.grow();
  await expectSound(fleet, 'after the kill');
  await fleet.untilOwned(['ben']);
  expect(performance.now() - killedAt).toBeLessThan(TAKEOVER_MS);
  await fleet.untilEqual();
  const after = await fleet.owners();
  // Nobody else lost a job by it.
  for (const [jobId, owner] of before) if (owner !== 'ben') expect(after.get(jobId)).toBe(owner);

  // It comes back and gets its share again.
  await fleet.agent('ben').start();
  fleet.grow();
  await fleet.untilSharing('ben');
  await expectEqual(fleet);
});
