/** A fleet whose machines have a mirror directory each: commands name the agent that has the bytes. */
import { expect, it } from 'vitest';
import { Fleet } from '../../../support/fleet.ts';
import { needs } from '../../../support/needs.ts';

it('tail and status name the agent that has the mirrors', needs('postgres'), async (context) => {
  const fleet = await Fleet.make(context, {
    jobs: 1,
    agents: ['anna', 'ben'],
    sections: { fleet: { separateMirrors: true } },
  });
  await fleet.run();
  const [[jobId, owner] = ['', '']] = await fleet.owners();
  const other = owner === 'anna' ? 'ben' : 'anna';
  const named = `agent ${owner} has the mirrors of job ${jobId}: run this on its machine`;
  expect((await fleet.agent(other).command('tail', jobId)).stderr).toContain(named);
  expect((await fleet.agent(owner).command('tail', jobId)).stderr).not.toContain('has the mirrors');
  expect((await fleet.agent(other).command('status', jobId)).stdout).toContain(`with ${owner} (attempt 1)`);
});
