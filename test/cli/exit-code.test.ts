/** Which exit code a command over several jobs, and a search, ends with. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import { check } from '../../src/cli/commands/check.ts';
import { forget } from '../../src/cli/commands/forget.ts';
import { grep } from '../../src/cli/commands/grep.ts';
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

it('a job that is not proven changes no exit code of a failure before it', async () => {
  const { file, store } = await ownState();
  const request = { tasks: null, files: ['stdout'], results: true, settleAfterMs: null, source: 'command' } as const;
  store.jobs.watch({ jobId: '2' as JobId, ...request }, 1);
  store.jobs.setState('2' as JobId, 'settled');
  for (const [jobs, code] of [
    ['12', EXIT.notFound],
    ['2', EXIT.failed],
  ] as const) {
    process.exitCode = undefined;
    await forget([...jobs] as JobId[], { config: file, dryRun: true });
    expect(process.exitCode, printed()).toBe(code);
  }
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

it.each([
  ['a match', 'needle', EXIT.ok, []],
  ['no match', 'nowhere', EXIT.failed, []],
  ['an unreadable mirror before a match', 'needle', EXIT.usage, ['1']],
  ['an unreadable mirror after a match', 'needle', EXIT.usage, ['3']],
  ['an unreadable mirror and no match', 'nowhere', EXIT.usage, ['1']],
  ['a match that ends a quiet search', 'needle', EXIT.ok, ['3'], true],
])('grep ends with the code of %s', async (_, pattern, code, unreadable, quiet = false) => {
  const { file, config } = await ownState();
  for (const task of ['1', '2', '3']) {
    const directory = path.join(config.mirror.directory, '501', 'live', task);
    fs.mkdirSync(directory, { recursive: true });
    fs.writeFileSync(path.join(directory, 'stdout.log'), 'a needle\n');
  }
  const open = fs.openSync;
  vi.spyOn(fs, 'openSync').mockImplementation((at, ...rest) => {
    if (unreadable.some((task) => String(at).includes(`/live/${task}/`)))
      throw Object.assign(new Error(`EIO: i/o error, open '${String(at)}'`), { code: 'EIO' });
    return open(at, ...rest);
  });
  const options = { config: file, regexp: [], filename: true, task: [], file: [], fixedStrings: true, quiet };
  await grep([pattern, '501'], options);
  expect(process.exitCode, printed()).toBe(code);
  expect(printed().includes('EIO')).toBe(unreadable.length > 0 && !quiet);
});
