import { expect, test } from 'vitest';
import { endProcesses, startProcess } from '../../bench/processes.ts';
import { untilAsked } from '../../bench/watching.ts';

const start = (script: string) => startProcess(process.execPath, ['-e', script]);
const FAILS = 'console.log("begun"); console.error("no such file"); process.exitCode = 3';
const STAYS = 'console.log("begun"); setInterval(() => {}, 1000)';

test('what is waited for in vain, because the process ended, is an error with what it wrote last', async () => {
  const fails = start(FAILS);
  await expect(fails.until('it followed', () => false)).rejects.toThrow(/ended before it followed: no such file/);
  await expect(fails.says(/port (\d+)/)).rejects.toThrow(/ended before it said .*: no such file/);
  const idle = { calls: 0, firstCallAt: null, jobs: 0, longestGapMs: 0, waitedMs: 0, busyMs: 0 };
  const middleware = { url: '', startedAt: 0, figures: async () => idle, reset: async () => {}, stop: async () => {} };
  await expect(untilAsked(fails, middleware, 1)).rejects.toThrow(/ended before it asked 1 times: no such file/);
  await fails.stop();
});

test('what a process said before it ended is found', async () => {
  const [, found] = await start(FAILS).says(/beg(un)/);
  expect(found).toBe('un');
});

test('processes that were left running are ended', async () => {
  const stays = start(STAYS);
  await stays.says(/begun/);
  await endProcesses();
  expect(() => process.kill(stays.pid, 0)).toThrow('ESRCH');
});
