/** Time: a clock that is wrong. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { PATIENCE } from '../../../support/e2e-until.ts';
import { Fleet } from '../../../support/fleet.ts';
import { expectEqual } from '../../../support/fleet-proof.ts';
import { needs } from '../../../support/needs.ts';

const AHEAD = new URL('../../../support/fleet-clock-ahead.mjs', import.meta.url).href;

it.concurrent('an agent whose clock is 20 s ahead takes nothing from anybody', {
  ...PATIENCE,
  ...needs('postgres'),
}, async (context) => {
  const fleet = await Fleet.make(context, { jobs: 20, agents: ['anna', 'ben'] });
  const early = await fleet.addAgent('cleo', { imports: [AHEAD], clockAheadMs: 20_000 });
  await fleet.runSpread();
  await sleep(5_000);
  const before = await fleet.attempts();
  for (let second = 0; second < 20; second++) {
    fleet.grow(1);
    await sleep(1_000);
  }
  expect(await fleet.attempts()).toEqual(before);
  await early.kill();
  await fleet.untilOwned(['cleo']);
  await expectEqual(fleet);
});
