/** `agent watch --mine` without a running agent. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { watchMine } from '../../src/cli/commands/watch-mine.ts';
import { lockHolder } from '../../src/store/lock.ts';
import { restConfig } from '../config/files.ts';

it('an agent can take the state while the command asks the service for the jobs', async () => {
  const holders: unknown[] = [];
  const server = http.createServer((_, response) => {
    holders.push(lockHolder(config.state.directory));
    response.writeHead(500).end();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const service = { protocol: 'rest', baseUrl: `http://127.0.0.1:${port}` };
  const { config, file } = await restConfig({ service });
  const written: string[] = [];
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  onTestFinished(() => void spy.mockRestore());
  await watchMine({ config: file, include: [], exclude: [] });
  expect(written.join('')).toContain('how many there are now is unknown');
  expect(holders.length).toBeGreaterThan(0);
  expect(new Set(holders)).toEqual(new Set([undefined]));
});
