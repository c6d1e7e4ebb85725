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
