/** Programs of this machine: what ends them, and what is said when they cannot be started. */
import { execFileSync } from 'node:child_process';
import { getEventListeners } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { inspect } from 'node:util';
import { expect, it, onTestFinished, vi } from 'vitest';
import { isInstalled, NotInstalled, type ProgramOptions, printedBy, runProgram } from '../../src/system/program.ts';
import { READS_TYPESCRIPT } from '../support/e2e-program.ts';
import { until } from '../support/e2e-until.ts';
import { failureOf } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const signal = new AbortController().signal;

const isThere = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const limit = { totalMs: 60_000 };

/** Runs a script of sh, and keeps what it says. */
function script(text: string, more: Partial<ProgramOptions> = {}) {
  const said: string[] = [];
  const onOutput = (bytes: Buffer) => void said.push(bytes.toString());
  const running = runProgram({ command: 'sh', args: ['-c', text], onOutput, limit, signal, ...more });
  running.catch(() => {});
  return { running, said, pids: () => said.join('').trim().split(/\s+/).filter(Boolean).map(Number) };
}

it.concurrent('a program is stopped by what its reader throws, and ends with that', async () => {
  let pid = 0;
  const onOutput = (text: Buffer) => {
    pid = Number(text);
    throw new Error('no room left');
  };
  await expect(script('echo $$; exec sleep 1000', { onOutput }).running).rejects.toThrow('no room left');
  await until('the end of it', () => !isThere(pid));
});

it('a program gets no variables but those that find it and its files, and English words', async () => {
  vi.stubEnv('LD_PRELOAD_', 'x');
  onTestFinished(() => void vi.unstubAllEnvs());
  const variables = async (home: string | undefined) => {
    vi.stubEnv('HOME', home);
    const { printed } = await printedBy({ command: 'env', args: [], limit, maxBytes: 10_000, signal });
    return `${printed}`
      .replace(process.env['PATH'] ?? '', 'IT')
      .split('\n')
      .sort();
  };
  expect(await variables('/of-it')).toEqual(['', 'HOME=/of-it', 'LC_ALL=C', 'PATH=IT']);
  expect(await variables(undefined)).toEqual(['', 'LC_ALL=C', 'PATH=IT']);
});

it.concurrent.each([
  ['that says nothing', ':'],
  ['that floods its standard error', '{ yes >&2 & }'],
  ['that does not want to end', 'trap "" TERM'],
])('a program %s is ended with all it started when its time without progress is over', async (_, first) => {
  const { running, pids } = script(`${first}; sleep 1000 & echo $$ $!; while :; do wait; sleep 1000; done`, {
    limit: { idleMs: 300 },
  });
  await expect(running).rejects.toMatchObject({ code: 'timeout', message: 'the program sh did nothing for 0.3 s' });
  expect(pids()).toHaveLength(2);
  await until('the end of them', () => !pids().some(isThere));
});

it.concurrent('a program that goes on and on is asked to end when its whole time is over, and can keep what it has', async (context) => {
  const file = path.join(temporaryDirectory(undefined, context), 'kept');
  const { running } = script(`trap "echo asked > ${file}; exit 0" TERM; while :; do echo; sleep 0.05; done`, {
    limit: { totalMs: 500 },
  });
  await expect(running).rejects.toMatchObject({ code: 'timeout', message: 'the program sh did not end within 0.5 s' });
  expect(fs.readFileSync(file, 'utf8')).toBe('asked\n');
});

it.concurrent('a program that is slow but goes on may take many times as long as one that does nothing', async () => {
  const { running, said } = script('for i in 1 2 3 4 5 6 7 8; do sleep 0.5; echo $i; done', {
    limit: { idleMs: 2_000 },
  });
  expect((await running).code).toBe(0);
  expect(said.join('')).toContain('8');
});

it.concurrent('where progress is reported otherwise, what the program says is none, and what grows is', async () => {
  const chatty = script('echo $$; while :; do echo; sleep 0.05; done', {
    limit: { idleMs: 400, progress: async () => 0 },
  });
  await expect(chatty.running).rejects.toMatchObject({ code: 'timeout' });
  let bytes = 0;
  const growing = script('sleep 2', { limit: { idleMs: 1_000, progress: async () => ++bytes } });
  expect((await growing.running).code).toBe(0);
});

it.concurrent('a program whose output a process outside its group still holds is given up', async () => {
  const stop = new AbortController();
  const { running, pids } = script('setsid sleep 30 & echo $!', { signal: stop.signal });
  await until('it to be begun', () => pids().length === 1);
  stop.abort();
  await expect(running).rejects.toMatchObject({ code: 'aborted' });
  process.kill(pids()[0] ?? 0, 'SIGKILL');
});

it.concurrent('a program that ends has ended, whatever it left in the background, and that goes on', async (context) => {
  for (const left of ['sleep 30', 'setsid sleep 30', '(while sleep 0.2; do echo; done)']) {
    const file = path.join(temporaryDirectory(undefined, context), 'pid');
    const args = ['-c', `${left} & echo $! > ${file}; echo last >&2; exit 3`];
    expect(await runProgram({ command: 'sh', args, limit, signal })).toMatchObject({ code: 3, stderr: 'last\n' });
    const pid = Number(fs.readFileSync(file, 'utf8'));
    expect(isThere(pid)).toBe(true);
    process.kill(pid, 'SIGKILL');
  }
  // One that holds no output, so that nothing is waited for.
  const made = path.join(temporaryDirectory(undefined, context), 'made');
  const silent = ['-c', `(sleep 0.5; echo > ${made}) >/dev/null 2>&1 &`];
  expect(await runProgram({ command: 'sh', args: silent, limit, signal })).toMatchObject({ code: 0 });
  await until('its file', () => fs.existsSync(made));
  const args = ['-c', 'sleep 2.5 & echo word'];
  const printed = printedBy({ command: 'sh', args, limit, maxBytes: 100, signal });
  expect(await printed).toMatchObject({ code: 0, printed: Buffer.from('word\n') });
});

it('a program is installed if a directory of the path has it, and it can be run', () => {
  const [first, second] = [temporaryDirectory(), temporaryDirectory()];
  vi.stubEnv('PATH', `${first}::${second}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  fs.writeFileSync(path.join(first, 'text'), '', { mode: 0o644 });
  fs.writeFileSync(path.join(second, 'program'), '', { mode: 0o755 });
  // Of the working directory, which no empty part stands for.
  expect(['program', 'text', 'absent', 'scripts'].map(isInstalled)).toEqual([true, false, false, false]);
  vi.stubEnv('PATH', undefined);
  expect(isInstalled('program')).toBe(false);
});

it('what a program prints is kept up to a limit, and what it is given arrives', async () => {
  const options = { command: 'yes', args: [], limit, maxBytes: 1_000, signal };
  await expect(printedBy(options)).rejects.toMatchObject({ message: 'the program yes printed more than 1000 bytes' });
  expect((await printedBy({ ...options, command: 'cat' })).printed).toHaveLength(0);
  expect(String((await printedBy({ ...options, command: 'cat', input: Buffer.from('in') })).printed)).toBe('in');
  // It ends before it has read everything.
  expect(await printedBy({ ...options, command: 'true', input: Buffer.alloc(10_000_000) })).toMatchObject({ code: 0 });
});

it('of a long standard error, the end is kept', async () => {
  const args = ['-c', `head -c 9000 /dev/zero | tr '\\0' x >&2; echo end >&2`];
  const { stderr } = await runProgram({ command: 'sh', args, limit, signal });
  expect(stderr).toBe(`${'x'.repeat(3_996)}end\n`);
});

it('a program that cannot be started is refused with the reason and what to do, and without its arguments', async () => {
  const directory = temporaryDirectory();
  fs.writeFileSync(path.join(directory, 'hook.sh'), '#!/bin/sh\r\nexit 0\r\n', { mode: 0o755 });
  fs.writeFileSync(path.join(directory, 'text'), '', { mode: 0o644 });
  const files = ['absent', 'hook.sh', 'text'].map((name): [string, string?] => [path.join(directory, name)]);
  const refused: [string, string?][] = [['no-such-program'], ...files, ['sh', 'a secret\0']];
  const printed: string[] = [];
  for (const [command, argument = 'a secret'] of refused) {
    const error = await failureOf(runProgram({ command, args: [argument], limit, signal }));
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('a secret');
    const [kind, what] = [error instanceof NotInstalled, error.message.replaceAll(`${directory}/`, '')];
    printed.push(`${kind ? 'not installed, ' : ''}${error.code}: ${what}`, ...(error.hint ? [error.hint] : []));
  }
  expect(printed).toEqual([
    'not installed, local-io: the program no-such-program is not installed',
    'not installed, local-io: the program absent is not installed',
    'local-io: the program hook.sh cannot be started: its interpreter is not there',
    'check its first line (#!): it names no program, or ends with CR (save the file with LF line ends)',
    'local-io: the program text cannot be started (permission denied, EACCES)',
    'make it executable for the user of the agent (chmod +x), and see that it is a file',
    'local-io: the program sh cannot be started (ERR_INVALID_ARG_VALUE)',
    'see that there are not too many processes or open files (ulimit -u, ulimit -n)',
  ]);
});

it('a program that finds too many files open is said, and leaves nothing', () => {
  const program = new URL('../../src/system/program.ts', import.meta.url).href;
  const text = `
    import fs from 'node:fs';
    import { getEventListeners } from 'node:events';
    import { runProgram } from ${JSON.stringify(program)};
    try {
      for (;;) fs.openSync('/dev/null');
    } catch {}
    const { signal } = new AbortController();
    const error = await runProgram({ command: 'true', args: [], limit: { totalMs: 60000 }, signal }).catch((error) => error);
    fs.writeSync(1, [error.code, error.message, getEventListeners(signal, 'abort').length].join());`;
  const options = ['-c', 'ulimit -n 64; exec "$0" "$@"', process.execPath, ...READS_TYPESCRIPT];
  const said = execFileSync('/bin/sh', [...options, '--input-type=module', '-e', text], { encoding: 'utf8' });
  expect(said).toBe('local-io,the program true cannot be started (EMFILE),0');
});

it('a program that has ended leaves no timer, and no listener of the signal', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const end = path.join(temporaryDirectory(), 'end');
  const { signal } = new AbortController();
  const asked: ((bytes: number) => void)[] = [];
  const progress = () => new Promise<number>((resolve) => asked.push(resolve));
  const args = ['-c', `until [ -e ${end} ]; do sleep 0.01; done`];
  const running = runProgram({ command: '/bin/sh', args, limit: { idleMs: 60_000, progress }, signal });
  await until('its start', () => vi.getTimerCount() === 2);
  vi.advanceTimersByTime(500);
  fs.writeFileSync(end, '');
  await running;
  // What was asked before comes later.
  for (const answer of asked) answer(1);
  await new Promise((resolve) => setImmediate(resolve));
  expect([asked.length, vi.getTimerCount(), getEventListeners(signal, 'abort')]).toEqual([1, 0, []]);
});
