import net from 'node:net';
import { expect, it, vi } from 'vitest';

it.each([
  '../../src/remote/http/http-client.ts',
  '../../src/fleet/database/database.ts',
  '../../src/cli/check/network.ts',
])('a name with two addresses over a long way is reached by %s', async (client) => {
  net.setDefaultAutoSelectFamilyAttemptTimeout(250);
  vi.resetModules();
  await import(client);
  expect(net.getDefaultAutoSelectFamilyAttemptTimeout()).toBeGreaterThanOrEqual(2_000);
});
