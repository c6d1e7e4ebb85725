/** An agent that is stopped (SIGSTOP) for longer than its lease, and goes on: it must not write another byte. */
import { it } from 'vitest';
import { Fleet } from '../../../support/fleet.ts';
import { expectEqual, expectSound } from '../../../support/fleet-files.ts';
import { needs } from '../../../support/needs.ts';

it.concurrent('an agent that was stopped for longer than its lease', needs('postgres'), async (context) => {
  const fleet = await Fleet.make(context, { jobs: 30 });
  await fleet.runSpread();
  const ben = fleet.agent('ben');
  for (let round = 0; round < 2; round++) {
    fleet.grow();
    await ben.pause();
    fleet.grow();
    await fleet.untilOwned(['ben']);
    await fleet.untilEqual();
    // What it was about to write is older than this.
    fleet.grow();
    for (const file of fleet.files.filter((_, index) => index % 3 === 0)) file.rewrite();
    ben.resume();
    await expectSound(fleet, 'after it went on');
    await fleet.untilSharing('ben');
    await expectEqual(fleet);
  }
});
