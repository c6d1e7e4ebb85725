/** Programs that direct transfers run: what ends them, and what is said when they cannot be started. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { NotInstalled, runProgram } from '../../src/direct/program.ts';
import { until } from '../support/e2e-until.ts';

const signal = new AbortController().signal;

const isThere = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

it('a program is stopped by what its reader throws, and ends with that', async () => {
  let pid = 0;
  const onOutput = (text: string) => {
    pid = Number(text);
    throw new Error('no room left');
  };
  const running = runProgram({ command: 'sh', args: ['-c', 'echo $$; exec sleep 1000'], onOutput, signal });
  await expect(running).rejects.toThrow('no room left');
  await until('the end of it', () => !isThere(pid));
});

it('a program that is not installed is said', async () => {
  await expect(runProgram({ command: 'no-such-program', args: [], signal })).rejects.toBeInstanceOf(NotInstalled);
});

it.skipIf(!fs.existsSync('/bin/sh'))('a program that finds too many files open is said, and leaves nothing', () => {
  const program = new URL('../../dist/direct/program.js', import.meta.url).href;
  const script = `
    import fs from 'node:fs';
    import { getEventListeners } from 'node:events';
    import { runProgram } from ${JSON.stringify(program)};
    const open = [];
    try {
      for (;;) open.push(fs.openSync('/dev/null'));
    } catch {}
    const { signal } = new AbortController();
    const { code, message, hint } = await runProgram({ command: 'true', args: [], signal }).catch((error) => error);
    for (const fd of open) fs.closeSync(fd);
    console.log(JSON.stringify({ code, message, hint, listeners: getEventListeners(signal, 'abort').length }));`;
  const run = 'ulimit -n 64; exec "$0" --input-type=module -e "$1"';
  const said: unknown = JSON.parse(
    execFileSync('/bin/sh', ['-c', run, process.execPath, script], { encoding: 'utf8' }),
  );
  expect(said).toEqual({
    code: 'local-io',
    message: 'the program true cannot be started (EMFILE)',
    hint: expect.stringContaining('ulimit -n'),
    listeners: 0,
  });
});
