/** `agent check`: what a server reports of its own health, whoever writes it. */
import { expect, it, onTestFinished } from 'vitest';
import { healthOf } from '../../src/cli/check/service.ts';
import { restConfig } from '../config/files.ts';
import { startHttpServer } from '../support/wire-server.ts';

const COMPONENT = { Database: { IsHealthy: true }, Vault: { IsHealthy: false } };
const MISSING = [{ mark: 'note', text: 'not reported by this server (V6.0 and later have a page for it)' }];
const HEALTHY = { mark: 'ok', text: 'the server reports that it is healthy' };

it.each<[string, number, string, unknown]>([
  ['is healthy', 200, JSON.stringify({ IsHealthy: true, Version: 'v6.2.5', Component: {} }), [HEALTHY]],
  [
    'is not, and names a part',
    503,
    JSON.stringify({ IsHealthy: false, Component: COMPONENT }),
    [{ mark: 'warning', text: 'the server reports that it is not healthy: Vault', hint: 'ask its operator' }],
  ],
  [
    'writes more than a name',
    200,
    JSON.stringify({ IsHealthy: false, Component: { ['x'.repeat(10_000)]: { IsHealthy: false } } }),
    [expect.objectContaining({ text: expect.stringMatching(/^.{1,120}$/) })],
  ],
  ['has no such page', 404, '<html>no</html>', MISSING],
  ['answers with something else', 200, '{"IsHealthy": "yes"}', MISSING],
])('a server that %s', async (_, status, body, expected) => {
  const asked: string[] = [];
  const server = await startHttpServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization ?? 'without a session'}`);
    response.writeHead(status).end(body);
  });
  onTestFinished(() => server.close());
  const service = { protocol: 'rest', baseUrl: new URL(server.url).origin, path: '/heappe' };
  const { config } = await restConfig({ service });
  expect(await healthOf(config, new AbortController().signal)).toEqual(expected);
  expect(asked).toEqual(['GET /heappe/Health without a session']);
});
