/** An agent of a fleet without what it needs. */
import { expect, it } from 'vitest';
import { Fleet } from '../../../support/fleet.ts';
import { needs } from '../../../support/needs.ts';

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
