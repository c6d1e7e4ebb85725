/** docs/fleet.md, followed to the letter: its commands for the database, its address and its configuration. */
import fs from 'node:fs';
import * as v from 'valibot';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { fleetSection } from '../../../src/config/schema.ts';
import { FleetClient, readFleet } from '../../../src/fleet/commands/client.ts';
import { packageFile } from '../../../src/system/package-file.ts';
import { until } from '../../support/e2e-until.ts';
import { FleetParts, orderFor } from '../../support/fleet-parts.ts';
import { connectTo } from '../../support/fleet-relay.ts';
import { needs } from '../../support/needs.ts';

const TEXT = fs.readFileSync(packageFile('docs/fleet.md'), 'utf8');
const BLOCKS = [...TEXT.matchAll(/^```([a-z]*)\n(.*?)^```$/gms)].map(([, kind = '', text = '']) => ({ kind, text }));
const blockWith = (words: string) => BLOCKS.find(({ text }) => text.includes(words))?.text ?? '';
/** The administrator of a test's server has the name that the document gives the agents' role. */
const ROLE = 'agents_of_test';
const named = (text: string) => text.replaceAll('jobtail', ROLE);

it('two agents share jobs with the role, the database and the rights of the document alone', {
  ...needs('postgres'),
}, async () => {
  const fleet = await FleetParts.make();
  const commands = blockWith('createdb');
  const [, role] = /createuser --pwprompt (\S+)/.exec(named(commands)) ?? [];
  const [, owner, database] = /createdb --owner (\S+) (\S+)/.exec(named(commands)) ?? [];
  expect([role, owner, database]).toEqual([ROLE, ROLE, ROLE]);
  await fleet.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  await fleet.query(`CREATE DATABASE ${database} OWNER ${owner}`);
  const statements = [...named(commands).matchAll(/-c '([^']+)'/g)].map(([, sql = '']) => sql);
  expect(statements.length).toBeGreaterThan(1);
  const asAdministrator = new URL(fleet.address.url);
  asAdministrator.pathname = `/${database}`;
  const administrator = await connectTo(asAdministrator.href);
  for (const sql of statements) await administrator.query(sql);
  await administrator.end();

  const address = blockWith('postgresql://').trim();
  expect(address).toMatch(/^postgresql:\/\/jobtail:PASSWORD@db\.example\.org\/jobtail\?sslmode=verify-full/);
  const url = new URL(asAdministrator.href);
  [url.username, url.password] = [ROLE, 'secret'];
  const at = { url: url.href };
  expect(await readFleet({ ...fleet.address, ...at })).toMatchObject({ mayCreate: true, hasTables: false });
  const agents = ['anna', 'ben'].map((name) => fleet.start(name, at));
  for (const { log } of agents)
    await until('it to be in', () => log.some(({ message }) => message === 'joined the fleet'));
  const client = await FleetClient.open({ ...fleet.address, ...at });
  for (const number of [1, 2, 3, 4])
    await client.command({ jobId: orderFor(number).jobId, kind: 'watch', body: orderFor(number) });
  await until('both to follow some', () => agents.every(({ followed }) => followed.size === 2));
  await client.close();
});

it('the block of the document of fleets is a configuration', () => {
  const { mirror, fleet } = parse(blockWith('urlCredential')) as Record<string, unknown>;
  expect(mirror).toEqual({ directory: '/srv/mirrors' });
  expect(v.is(fleetSection('/etc/agent'), fleet)).toBe(true);
});
