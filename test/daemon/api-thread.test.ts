/** The sockets, seen from this side of their thread. */
import net from 'node:net';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ApiThread } from '../../src/daemon/api-thread.ts';
import { ownState } from '../cli/own-state.ts';
import { until } from '../support/e2e-until.ts';
import { SILENT } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const REQUEST = 'GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n';

async function listening() {
  const { config } = await ownState();
  const directory = temporaryDirectory();
  const api = new ApiThread(SILENT);
  onTestFinished(() => api.close());
  await api.use({ ...config, api: { directory, controlGroup: null } });
  return { api, socketPath: path.join(directory, 'read.sock') };
}

it('clients that connect again at once do not open what is being closed', async () => {
  const { api, socketPath } = await listening();
  const open = new Set<net.Socket>();
  let [lines, again] = [0, 0];
  const listen = () => {
    const socket = net.connect(socketPath, () => {
      open.add(socket);
      again += Number(lines > 0);
      socket.write(REQUEST);
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

it('a client that connects within a minute after the last one ended keeps its stream', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { socketPath } = await listening();
  const stream = async () => {
    const socket = net.connect(socketPath);
    socket
      .on('error', () => {})
      .resume()
      .write(REQUEST);
    await until('an open stream', () => socket.bytesRead > 0);
    return socket;
  };
  const first = await stream();
  first.destroy();
  await until('the end of the first one', () => vi.getTimerCount() > 0);
  const second = await stream();
  vi.advanceTimersByTime(60_000);
  vi.useRealTimers();
  // If the idle time ends the thread, this stream comes from a new one, after the end of the second.
  await stream();
  expect(second.closed).toBe(false);
});
