/** `agent watch --mine` without a running agent. */
import { expect, it } from 'vitest';
import { watchMine } from '../../src/cli/commands/watch-mine.ts';
import { lockHolder } from '../../src/store/lock.ts';
import { restConfig } from '../config/files.ts';
import { closedAtEnd, startHttpServer } from '../support/wire-server.ts';
import { captured } from './own-state.ts';

it('an agent can take the state while the command asks the service for the jobs', async () => {
  const holders: unknown[] = [];
  const server = await startHttpServer((_, response) => {
    holders.push(lockHolder(config.state.directory));
    response.writeHead(500).end();
  });
  const service = { protocol: 'rest', baseUrl: `http://127.0.0.1:${closedAtEnd(server).port}` };
  const { config, file } = await restConfig({ service });
  const printed = captured();
  await watchMine({ config: file, include: [], exclude: [] });
  expect(printed()).toContain('how many there are now is unknown');
  expect(holders.length).toBeGreaterThan(0);
  expect(new Set(holders)).toEqual(new Set([undefined]));
});
