/** Which exit code a command over several jobs, and one that is stopped, ends with. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import { check } from '../../src/cli/commands/check.ts';
import { forEach, untilStopped } from '../../src/cli/process.ts';
import { EXIT, JobtailError } from '../../src/errors.ts';
import type { JobId } from '../../src/job.ts';
import { packageFile } from '../../src/system/package-file.ts';
import { captured, ownState } from './own-state.ts';

/** Where else they are: a defect is none that a test can ask for. */
const ELSEWHERE = {
  ...{ 4: 'test/daemon/foreign-state.test.ts', 70: 'a defect' },
  ...{ 141: 'test/e2e/long/machines.test.ts', 143: 'SIGTERM, below' },
};

it('each exit code of docs/json.md is one that a printed command ends with', () => {
  const [, table = ''] = fs.readFileSync(packageFile('docs/json.md'), 'utf8').split('## Exit codes');
  const codes = [...table.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  const pages = fs.readdirSync(import.meta.dirname).filter((name) => /^printed.*\.txt$/.test(name));
  const text = pages.map((name) => fs.readFileSync(path.join(import.meta.dirname, name), 'utf8')).join('');
  const ended = [...text.matchAll(/^= (\d+)$/gm)].map(([, code]) => Number(code));
  expect(new Set([...ended, ...Object.keys(ELSEWHERE).map(Number)])).toEqual(new Set(codes));
});

let printed: () => string;
beforeEach(() => {
  printed = captured();
});

it('the first failure of several jobs decides, and the others are tried', async () => {
  const tried: string[] = [];
  await forEach(['1', '2', '3'] as JobId[], async (jobId) => {
    tried.push(jobId);
    if (jobId === '1') throw new JobtailError('sign-in-refused', 'no way');
    if (jobId === '2') throw new JobtailError('usage', 'no such word');
    throw Object.assign(new Error('ENOSPC: no space'), { code: 'ENOSPC', syscall: 'write' });
  });
  // The command is over.
  expect(printed()).toContain('free some space, or inodes (df -i), then run the command again');
  expect(tried).toEqual(['1', '2', '3']);
  expect(process.exitCode).toBe(new JobtailError('sign-in-refused', '').policy.exitCode);
  expect(process.exitCode).not.toBe(EXIT.usage);
});

it.each(['SIGINT', 'SIGTERM'] as const)(
  '%s between two steps of a command stops the next one, and a second one ends it',
  async (name) => {
    const code = name === 'SIGINT' ? EXIT.interrupted : EXIT.terminated;
    const exit = vi.spyOn(process, 'exit').mockReturnValue(undefined as never);
    const [stopped, tried]: [boolean[], string[]] = [[], []];
    await forEach(['1', '2'] as JobId[], async (jobId) => {
      tried.push(jobId);
      process.emit(name, name);
      expect(exit).not.toHaveBeenCalled();
      process.emit(name, name);
      expect(exit).toHaveBeenCalledExactlyOnceWith(code);
      await untilStopped(async (signal) => void stopped.push(signal.aborted));
      throw new JobtailError('aborted', 'the command was interrupted');
    });
    expect([stopped, tried]).toEqual([[true], ['1']]);
    expect(process.exitCode).toBe(code);
    expect(process.listenerCount(name)).toBe(0);
  },
);

it('a signal ends agent check also while it waits for a server that says nothing, and is no finding', async () => {
  const server = net.createServer();
  const connected = once(server, 'connection');
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as net.AddressInfo;
  const { file } = await ownState({ service: { protocol: 'rest', baseUrl: `http://127.0.0.1:${port}` } });
  const checking = check({ config: file, task: [] });
  const [socket] = await connected;
  process.emit('SIGINT', 'SIGINT');
  await expect(checking).rejects.toMatchObject({ name: 'AbortError' });
  expect(process.exitCode).toBe(EXIT.interrupted);
  expect(printed()).not.toContain('connection');
  socket.destroy();
  server.close();
});
