/** The sockets, seen from this side of their thread. */
import net from 'node:net';
import path from 'node:path';
import { expect, it } from 'vitest';
import { ApiThread } from '../../src/daemon/api-thread.ts';
import { ownState } from '../cli/own-state.ts';
import { until } from '../support/e2e-until.ts';
import { SILENT } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it('clients that connect again at once do not open what is being closed', async () => {
  const { config } = await ownState();
  const directory = temporaryDirectory();
  const api = new ApiThread(SILENT);
  await api.use({ ...config, api: { directory, controlGroup: null } });
  const open = new Set<net.Socket>();
  let [lines, again] = [0, 0];
  const listen = () => {
    const socket = net.connect(path.join(directory, 'read.sock'), () => {
      open.add(socket);
      again += Number(lines > 0);
      socket.write('GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n');
    });
    socket.on('data', () => (lines += 1)).on('error', () => {});
    socket.on('close', () => open.delete(socket) && listen());
  };
  listen();
  await until('an open stream', () => lines > 0);
  await api.close();
  expect(again).toBe(0);
  expect(open.size).toBe(0);
});
