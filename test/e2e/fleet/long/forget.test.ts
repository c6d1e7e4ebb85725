/** Old jobs are removed from a fleet, by hand and by themselves, and no configuration follows them again. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { PATIENCE, until } from '../../../support/e2e-until.ts';
import { Fleet, mustSucceed } from '../../../support/fleet.ts';
import type { FleetAgent } from '../../../support/fleet-agent.ts';
import { needs } from '../../../support/needs.ts';

function configure({ configFile }: FleetAgent, change: (config: { watch: object[] }) => object): void {
  const config = JSON.parse(fs.readFileSync(configFile, 'utf8')) as { watch: object[] };
  fs.writeFileSync(configFile, JSON.stringify({ ...config, ...change(config) }));
}

it('agent forget and retention remove jobs and their files', { ...PATIENCE, ...needs('postgres') }, async (context) => {
  const fleet = await Fleet.make(context, { jobs: 2, agents: ['anna'] });
  const [anna] = fleet.agents as [FleetAgent];
  const settling = ({ watch }: { watch: object[] }) => ({
    watch: watch.map((entry) => ({ ...entry, settleAfterMinutes: 0.02 })),
  });
  configure(anna, settling);
  fleet.grow();
  await fleet.run();
  await until('both to be settled', async () => (await anna.status()).jobs.every(({ state }) => state === 'settled'));
  const [byHand, byItself] = fleet.jobs.map(({ jobId }) => jobId as string) as [string, string];
  const isThere = (jobId: string) => fs.existsSync(path.join(fleet.place.mirror, jobId));
  const known = async () => (await anna.status()).jobs.map(({ jobId }) => jobId);

  expect(await mustSucceed(anna, 'forget', byHand, '--delete-files', '--yes')).toContain(`job ${byHand} is removed; `);
  expect([await known(), isThere(byHand), isThere(byItself)]).toEqual([[byItself], false, true]);

  const ben = await fleet.addAgent('ben');
  configure(ben, (config) => ({ ...settling(config), retention: { settledDays: 0.00001, deleteFiles: true } }));
  await ben.start();
  await ben.program.logs('job removed');
  expect([await known(), isThere(byItself)]).toEqual([[], false]);
  await ben.program.logs('configured job not followed');
  expect(await fleet.query('SELECT state FROM jobtail.jobs')).toEqual([{ state: 'forgotten' }, { state: 'forgotten' }]);
});
