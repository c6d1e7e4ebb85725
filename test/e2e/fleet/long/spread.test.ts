/** Agents that come, and jobs that are too many. */
import { expect, it } from 'vitest';
import { until } from '../../../support/e2e-until.ts';
import { Fleet } from '../../../support/fleet.ts';
import { expectEqual } from '../../../support/fleet-files.ts';
import { needs } from '../../../support/needs.ts';

const SHARE_MS = 60_000;

it.concurrent('a new agent gets its share within a minute, and no job wanders about', {
  ...needs('postgres'),
}, async (context) => {
  const fleet = await Fleet.make(context, { jobs: 30, agents: ['anna'] });
  fleet.grow();
  await fleet.run();
  const before = (await fleet.attempts()).length;
  const [ben, cleo] = [await fleet.addAgent('ben'), await fleet.addAgent('cleo')];
  const cameAt = performance.now();
  await Promise.all([ben.start(), cleo.start()]);
  await fleet.untilSpread();
  expect(performance.now() - cameAt).toBeLessThan(SHARE_MS);
  // Twenty had to move; a few may have moved twice.
  expect((await fleet.attempts()).length - before).toBeLessThan(35);
  await expectEqual(fleet);
});

it.concurrent('jobs for which no agent has room wait, and get their owner when there is room', {
  ...needs('postgres'),
}, async (context) => {
  const fleet = await Fleet.make(context, { jobs: 10, agents: ['anna', 'ben'], sections: { fleet: { maxJobs: 4 } } });
  const [anna] = fleet.agents;
  fleet.grow();
  await Promise.all(fleet.agents.map((agent) => agent.start()));
  for (const { jobId } of fleet.jobs) await anna?.command('watch', jobId);
  await until('all to be full', async () => [...(await fleet.shares()).values()].join() === '4,4');
  const status = await anna?.status();
  expect(status?.jobs.filter(({ owner }) => owner === null)).toHaveLength(2);
  await (await fleet.addAgent('cleo')).start();
  await fleet.untilOwned();
  await expectEqual(fleet);
});
