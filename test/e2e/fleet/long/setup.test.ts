/** What somebody who sets a fleet up meets: its database, a missing package, mirrors of each machine. */
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

/** As where npm left pg out: jobtail was installed under an older Node.js, or without optional packages. */
const WITHOUT_PG = inline(`
  import { register } from 'node:module';
  register(${JSON.stringify(
    inline(`
  export async function resolve(specifier, context, next) {
    if (specifier !== 'pg') return await next(specifier, context);
    throw Object.assign(new Error('Cannot find package pg'), { code: 'ERR_MODULE_NOT_FOUND' });
  }`),
  )});`);

function inline(script: string): string {
  return `data:text/javascript,${encodeURIComponent(script)}`;
}

it('without pg, an agent and commands end with 3 and with what to do', needs('postgres'), async (context) => {
  const fleet = await Fleet.make(context, { jobs: 0, agents: [] });
  const anna = await fleet.addAgent('anna', [WITHOUT_PG]);
  for (const words of [['run'], ['status'], ['watch', '501'], ['check']]) {
    const { code, stdout, stderr } = await anna.command(...words);
    const said = `${stdout}${stderr}`;
    expect([words, said]).toEqual([words, expect.stringContaining('the package pg, which a fleet needs, is missing')]);
    expect([words, said]).toEqual([words, expect.stringContaining('install jobtail again')]);
    expect([words, code, said.includes('    at ')]).toEqual([words, 3, false]);
  }
});

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
