/** `agent check` and a server that hangs. */
import { expect, it } from 'vitest';
import { checkConnection } from '../../../src/cli/check/network.ts';
import { restConfig } from '../../config/files.ts';
import { closedAtEnd, startTcpServer } from '../../support/wire-server.ts';

it('the check of a connection ends though the server sends nothing', async () => {
  const { url } = closedAtEnd(await startTcpServer(() => {}));
  const { config } = await restConfig();
  const found = await checkConnection(config, new URL(url), new AbortController().signal);
  expect(found.map(({ text }) => text)).toEqual([
    expect.stringContaining(' answers in '),
    `${new URL(url).origin} is not encrypted`,
    'its clock is not compared: it sends no time',
  ]);
});
