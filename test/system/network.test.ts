import net from 'node:net';
import { expect, it, vi } from 'vitest';

it.each([
  ['HTTP', () => import('../../src/remote/http/http-client.ts'), 250, 2_000],
  ['a fleet', () => import('../../src/fleet/database/database.ts'), 250, 2_000],
  ['agent check', () => import('../../src/cli/check/network.ts'), 250, 2_000],
  ['a process with a longer time of its own', () => import('../../src/system/network.ts'), 3_000, 3_000],
])('a name with two addresses over a long way is reached by %s', async (_, load, before, after) => {
  net.setDefaultAutoSelectFamilyAttemptTimeout(before);
  vi.resetModules();
  await load();
  expect(net.getDefaultAutoSelectFamilyAttemptTimeout()).toBe(after);
});
