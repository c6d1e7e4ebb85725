/** `agent grep` as people run it: the built program over mirrors on the disk, without an agent. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { MINIMAL } from '../../config/files.ts';
import { PROGRAM } from '../../support/e2e-program.ts';
import { needs } from '../../support/needs.ts';
import { Terminal } from '../../support/service-terminal.ts';
import { directoryOfFile } from '../../support/temp-directory.ts';

const directory = directoryOfFile();

/** A mirror of stdout, and the environment of a command that reads it. */
function mirror(job: string, task: string, content: string) {
  const file = path.join(directory, 'mirror', job, 'live', task, 'stdout.log');
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, content);
  const config = path.join(directory, 'config.yaml');
  fs.writeFileSync(config, `${MINIMAL}mirror: {directory: mirror}\nstate: {directory: state}\n`);
  return { file, env: { ...process.env, AGENT_CONFIG: config, NO_COLOR: '1' } };
}

it('agent grep ends with 2 and names the file if an expression never ends, and at once by Ctrl-C', async () => {
  const { env } = mirror('9', '2', `${'a'.repeat(60)}b\n`);
  const { status, stderr } = spawnSync(process.execPath, [PROGRAM, 'grep', '^(a+)+$', '9'], { env, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining('9/live/2/stdout.log') });
  mirror('9', '1', 'b\n');
  const args = [PROGRAM, 'grep', '^(?:b|(?:a|a)*$)', '9'];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [output] = (await once(child.stdout, 'data')) as [Buffer];
  expect(output.toString()).toBe('9/1 stdout:b\n');
  child.kill('SIGINT');
  expect(await once(child, 'exit')).toEqual([null, 'SIGINT']);
});

it('agent grep has bounded memory for a line of any length', () => {
  const { file, env } = mirror('10', '1', 'a very long line');
  fs.truncateSync(file, 512 * 1024 * 1024);
  fs.appendFileSync(file, '\nand the next\n');
  const args = ['--max-old-space-size=64', PROGRAM, 'grep', '-n', 'the next|^b', '10'];
  expect(spawnSync(process.execPath, args, { env, encoding: 'utf8' }).stdout).toBe('10/1 stdout:2:and the next\n');
  fs.rmSync(file);
});

describe('on a terminal', needs('script'), () => {
  it('agent grep colours matches, and makes control characters visible', async (context) => {
    const { env } = mirror('501', '10', 'a \u001b[2Jstep\n');
    const run = async (more: Readonly<Record<string, string>>) => {
      const all = { AGENT_CONFIG: env.AGENT_CONFIG, ...more };
      const terminal = new Terminal(['grep', 's.ep', '501'], { context, cwd: directory, env: all });
      expect(await terminal.ended).toBe(0);
      return terminal.text;
    };
    const match = '\u001b[1m\u001b[31mstep\u001b[39m\u001b[22m';
    const label = '\u001b[35m501/10 stdout\u001b[39m\u001b[36m:\u001b[39m';
    expect(await run({})).toBe(`${label}a \\u{001B}[2J${match}\r\n`);
    expect(await run({ NO_COLOR: '1' })).toBe('501/10 stdout:a \\u{001B}[2Jstep\r\n');
  });
});
