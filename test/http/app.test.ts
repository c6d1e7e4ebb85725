/** The HTTP application: the headers of each response, and what its gates and failures become. */
import { expect, it } from 'vitest';
import { JobtailError } from '../../src/errors.ts';
import { appOf, get, type HttpGate, type HttpRoute } from '../../src/http/app.ts';
import { changed, notThere, Refused } from '../../src/http/refused.ts';

function appThat(answer: HttpRoute['answer'], ...gates: HttpGate[]) {
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => void failures.push(error);
  const routes = [get('/here', answer), { method: 'POST', path: '/there', answer } as const];
  const app = appOf({ routes, gates, hint: 'see the manual', onFailure });
  const ask = async (method: string, path: string) => {
    const response = await app.request(path, { method });
    return { status: response.status, headers: response.headers, json: (await response.json()) as { error: object } };
  };
  return { app, ask, failures };
}

const defect = new TypeError('x is no function');

it.each<[number, unknown, object]>([
  [400, new Refused(400, 'no'), { code: 'usage', message: 'no', hint: null }],
  [401, new Refused(401, 'no', { hint: 'open the link' }), { code: 'permission', hint: 'open the link' }],
  [403, new Refused(403, 'no'), { code: 'permission' }],
  [404, notThere('such job'), { code: 'usage', message: 'there is no such job' }],
  [405, new Refused(405, 'no'), { code: 'usage' }],
  [409, changed('v2'), { code: 'superseded', message: expect.stringContaining('rewritten'), version: 'v2' }],
  [415, new Refused(415, 'no'), { code: 'usage' }],
  [429, new Refused(429, 'no'), { code: 'rate-limited' }],
  [500, defect, { code: 'internal', message: 'x is no function' }],
  [503, new JobtailError('store', 'no'), { code: 'store' }],
])('status %i is that of %s', async (status, thrown, error) => {
  const { ask, failures } = appThat(() => {
    throw thrown;
  });
  const { headers, ...found } = await ask('GET', '/here');
  expect(found).toMatchObject({ status, json: { version: 2, error } });
  expect('version' in found.json.error).toBe('version' in error);
  expect(headers.get('retry-after')).toBe(status === 429 ? '1' : null);
  expect(failures).toEqual(status === 500 ? [defect] : []);
});

it('an address without a route, or with another method, gets the hint', async () => {
  const { ask } = appThat(() => ({ is: 'here' }));
  const nothing = { error: { code: 'usage', message: 'there is nothing at this address', hint: 'see the manual' } };
  for (const [method, path] of [
    ['GET', '/'],
    ['POST', '/here'],
    ['GET', '/there'],
  ] as const)
    expect(await ask(method, path)).toMatchObject({ status: 404, json: nothing });
  expect(await ask('POST', '/there')).toMatchObject({ status: 200, json: { version: 2, is: 'here' } });
});

it('each gate is asked before a route, in their order', async () => {
  const asked: string[] = [];
  const gate = (name: string, isOpen: boolean): HttpGate => {
    return async (_, next) => {
      asked.push(name);
      if (!isOpen) throw new Refused(403, `refused by the ${name}`);
      await next();
    };
  };
  const answer = () => ({ asked: asked.push('route') });
  const { ask } = appThat(answer, gate('first', true), gate('second', false), gate('third', true));
  for (const path of ['/here', '/nowhere'])
    expect((await ask('GET', path)).json).toMatchObject({ error: { message: 'refused by the second' } });
  expect(asked).toEqual(['first', 'second', 'first', 'second']);
});

it('a response has the policy of content that its route gives it, or that of the page', async () => {
  const headers = { 'content-security-policy': 'sandbox' };
  const { app } = appThat(() => new Response('', { headers }));
  const sent = Object.fromEntries((await app.request('/here')).headers);
  const ofPage = (await appThat(() => ({})).ask('GET', '/here')).headers.get('content-security-policy');
  expect(ofPage).toMatch(/^default-src 'none'; .*; img-src 'self' blob: data:; .*frame-ancestors 'none'$/);
  const always = { 'origin-agent-cluster': '?1', 'permissions-policy': 'camera=(), geolocation=(), microphone=()' };
  expect(sent).toMatchObject({ ...headers, ...always });
});
