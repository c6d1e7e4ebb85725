/** What somebody who sets a fleet up meets. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { Fleet, mustSucceed } from '../../../support/fleet.ts';
import { needs } from '../../../support/needs.ts';

it.concurrent('a check looks at the database, makes nothing, and names what is wrong with it', {
  ...needs('postgres'),
}, async (context) => {
  const fleet = await Fleet.make(context, { jobs: 0, agents: ['anna'] });
  const anna = fleet.agent('anna');
  expect(await mustSucceed(anna, 'check')).toMatch(/✓ fleet +PostgreSQL \d+.* at 127\.0\.0\.1:\d+\/postgres, 0 agents/);
  const schemas = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'jobtail%'";
  expect(await fleet.query(schemas)).toEqual([]);
  await anna.start();
  expect(await mustSucceed(anna, 'check')).toContain('1 agent registered');

  const urlFile = `${fleet.place.directory}/anna/url`;
  const url = fs.readFileSync(urlFile, 'utf8');
  fs.writeFileSync(urlFile, url.replace(/:[^:@]+@/, ':hunter2hunter2@'));
  const { code, stdout, stderr } = await anna.command('check');
  expect([code, stdout]).toEqual([8, expect.stringMatching(/✗ fleet .*password authentication failed/)]);
  expect(stdout).toContain('check the user and the password of the address');
  expect(`${stdout}${stderr}`).not.toContain('hunter2');
});

it.concurrent('two agents with one name are not both of the fleet', needs('postgres'), async (context) => {
  const fleet = await Fleet.make(context, { jobs: 0, agents: ['anna', 'ben'] });
  const [anna, ben] = [fleet.agent('anna'), fleet.agent('ben')];
  await anna.start();
  const text = fs.readFileSync(ben.configFile, 'utf8');
  fs.writeFileSync(ben.configFile, text.replace('"name": "ben"', '"name": "anna"'));
  ben.begin();
  const { code, stderr } = await ben.program.ended;
  expect([code, stderr]).toEqual([4, expect.stringContaining('another agent of the fleet is called anna')]);
  expect(anna.isRunning).toBe(true);
});

it.concurrent('jobs that an agent followed alone are those of the fleet when it joins', {
  ...needs('postgres'),
}, async (context) => {
  const fleet = await Fleet.make(context, { jobs: 2, agents: ['anna', 'ben'] });
  const anna = fleet.agent('anna');
  const config = JSON.parse(fs.readFileSync(anna.configFile, 'utf8')) as Record<string, unknown>;
  const { fleet: section, ...alone } = config;
  fs.writeFileSync(anna.configFile, JSON.stringify(alone));
  for (const { jobId } of fleet.jobs) await mustSucceed(anna, 'watch', jobId, '--no-wait');
  fleet.grow();
  anna.begin();
  await fleet.untilEqual();
  await anna.terminate();
  fs.writeFileSync(anna.configFile, JSON.stringify({ ...alone, fleet: section }));
  await Promise.all(fleet.agents.map((agent) => agent.start()));
  await fleet.untilOwned();
  fleet.grow();
  await fleet.untilEqual();
  expect((await anna.status()).jobs.map(({ jobId }) => jobId)).toEqual(fleet.jobs.map(({ jobId }) => jobId));
});
