/** The first and the last that a fleet sees of its database's format. */
import { expect, it } from 'vitest';
import { PATIENCE } from '../../support/e2e-until.ts';
import { Fleet } from '../../support/fleet.ts';
import { needsFleet } from '../../support/fleet-node.ts';

it('two agents make the tables at once, and one that is older refuses them', {
  ...PATIENCE,
  ...needsFleet(),
}, async (context) => {
  const fleet = await Fleet.make(context, { jobs: 0, agents: ['anna', 'ben'] });
  await Promise.all(fleet.agents.map((agent) => agent.start()));
  expect(await fleet.query('SELECT name FROM jobtail.agents ORDER BY name')).toEqual([
    { name: 'anna' },
    { name: 'ben' },
  ]);

  await fleet.query('UPDATE jobtail.version SET version = version + 1');
  const cleo = await fleet.addAgent('cleo');
  for (const words of [['run'], ['status'], ['watch', '501']]) {
    const { code, stderr } = await cleo.command(...words);
    expect([words, code, stderr]).toEqual([words, 3, expect.stringContaining('newer version of the agent')]);
  }
  // Those that run are not touched.
  for (const agent of fleet.agents.slice(0, 2)) expect(agent.isRunning).toBe(true);
});
