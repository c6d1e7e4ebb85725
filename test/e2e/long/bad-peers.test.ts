/** The built program beside servers and proxies that accept a connection and then answer nothing that makes sense. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';
import { BAD_PEERS } from '../../support/wire-peers.ts';
import { closedAtEnd, startTcpServer } from '../../support/wire-server.ts';

const { 'is silent': silent, ...quick } = BAD_PEERS;
const MAX_A_SECOND = 3;

const WAYS = {
  'a proxy of an https:// service': (peer: string) => ({ baseUrl: 'https://middleware.example.org', proxy: peer }),
  'a proxy of an http:// service': (peer: string) => ({ baseUrl: 'http://middleware.example.org', proxy: peer }),
  'a service': (peer: string) => ({ baseUrl: peer }),
};

// test/remote/http/proxy.test.ts has each peer in each place.
const ways = Object.entries(WAYS);
const cases = Object.entries(quick).map(([what, peer], index) => {
  const [kind = '', wayTo = WAYS['a service']] = ways[index % ways.length] ?? [];
  return [`${kind} that ${what}`, wayTo, peer] as const;
});

it.for(cases)(
  '%s is tried with pauses, as are the webhooks and the database behind it',
  async ([, wayTo, peer], context) => {
    const place = Place.make(context);
    const [service, webhook, database] = await Promise.all(
      [0, 1, 2].map(async () => closedAtEnd(await startTcpServer(peer))),
    );
    if (service === undefined || webhook === undefined || database === undefined) throw new Error('no servers');
    const [password, address] = ['password', 'database'].map((name) => path.join(place.directory, name));
    fs.writeFileSync(String(password), 'a password of alice', { mode: 0o600 });
    fs.writeFileSync(String(address), `postgresql://jobtail@127.0.0.1:${database.port}/jobtail`, { mode: 0o600 });
    const way = wayTo(`http://127.0.0.1:${service.port}`);
    const sections = {
      service: { protocol: 'rest', ...way },
      auth: { method: 'password', username: 'alice', passwordFile: password },
      mirror: { directory: place.mirror },
      state: { directory: place.state },
      watch: [{ job: 1 }, { job: 2 }, { job: 3 }],
      poll: { minIntervalSeconds: 0.1, maxIntervalSeconds: 0.5 },
      notify: [{ on: ['failed'], url: 'https://hooks.example.org/', proxy: `http://127.0.0.1:${webhook.port}` }],
    };
    const peers = [service, webhook, database];
    const begunAt = performance.now();

    place.writeConfig(JSON.stringify(sections));
    const jobs = await place.agent('jobs');
    expect(jobs).toMatchObject({ code: 6, stderr: expect.stringContaining(`127.0.0.1:${service.port}`) });
    expect(service.connections()).toBe(1);
    expect(await place.agent('notify', '--test')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(`the proxy 127.0.0.1:${webhook.port}`),
    });
    const agent = place.start(['run']);
    await until('three calls of the agent', () => service.connections() >= 4);
    agent.signal('SIGTERM');
    await agent.ended;

    place.writeConfig(JSON.stringify({ ...sections, fleet: { urlFile: address } }));
    expect((await place.agent('check')).stdout).toContain('the database of the fleet');
    const member = place.start(['run']);
    await until('five calls of a member', () => database.connections() >= 5);
    member.signal('SIGTERM');
    await member.ended;

    const seconds = (performance.now() - begunAt) / 1000;
    for (const { connections } of peers) expect(connections()).toBeLessThanOrEqual(MAX_A_SECOND * (seconds + 1));
  },
);

it('a proxy that is silent ends a command within the limit of a connection', async (context) => {
  const place = Place.make(context);
  const proxy = closedAtEnd(await startTcpServer(silent));
  const password = path.join(place.directory, 'password');
  fs.writeFileSync(password, 'a password of alice', { mode: 0o600 });
  const service = {
    protocol: 'rest',
    baseUrl: 'https://middleware.example.org',
    proxy: `http://127.0.0.1:${proxy.port}`,
  };
  place.writeConfig(
    JSON.stringify({ service, auth: { method: 'password', username: 'alice', passwordFile: password } }),
  );
  expect(await place.agent('jobs')).toMatchObject({
    code: 6,
    stderr: expect.stringContaining(`through the proxy 127.0.0.1:${proxy.port} did not accept a connection in time`),
  });
  expect(proxy.connections()).toBe(1);
});
