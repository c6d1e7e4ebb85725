/** `agent grep` and `agent errors` as people run it: the built program over mirrors on the disk, without an agent. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROGRAM } from '../../support/e2e-program.ts';
import { needs } from '../../support/needs.ts';
import { Terminal } from '../../support/service-terminal.ts';

let directory = '';
const environment = () => ({ ...process.env, AGENT_CONFIG: path.join(directory, 'config.yaml'), NO_COLOR: '1' });

beforeAll(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'jobtail-grep-'));
  const config = {
    service: {
      protocol: 'soap',
      fileTransferUrl: 'https://m.example.org/x',
      namespace: 'urn:x',
      baseUrl: 'https://m.example.org',
    },
    auth: { username: 'alice', passwordFile: 'password' },
    mirror: { directory: 'mirror' },
    state: { directory: 'state' },
  };
  fs.writeFileSync(path.join(directory, 'config.yaml'), JSON.stringify(config));
  mirror('501', '9001', 'stdout.log', 'step 1\nstep 2\nlast step');
  mirror('501', '9001', 'stderr.log', 'warning\nCUDA out of memory\n');
  mirror('501', '9001', 'stdout.log.1', 'step of the first generation\n');
  mirror('501', '9001', 'stdout.log.keeping', 'step of no generation\n');
  mirror('501', '10', 'log.log', 'a \u001b[2Jstep\n');
  mirror('60', '1', 'progress.log', Buffer.from([0x73, 0x74, 0x65, 0x70, 0xff, 0x0d, 0x0a]));
  fs.mkdirSync(path.join(directory, 'mirror/not-a-job'));
});
afterAll(() => fs.rmSync(directory, { recursive: true }));

function mirror(job: string, task: string, name: string, content: string | Buffer): string {
  const file = path.join(directory, 'mirror', job, 'live', task, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, content);
  return file;
}

const grep = (...args: string[]) => agent('grep', ...args);

function agent(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], {
    env: environment(),
    encoding: 'latin1',
  });
  return { status, lines: stdout.split('\n').slice(0, -1), stderr };
}

describe('agent grep', () => {
  it('ends with 2 and names the file if an expression never ends', () => {
    mirror('9', '2', 'stdout.log', `${'a'.repeat(60)}b\n`);
    const { status, stderr } = grep('^(a+)+$', '9');
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining('9/live/2/stdout.log') });
    fs.rmSync(path.join(directory, 'mirror/9'), { recursive: true });
  });

  it('is ended by Ctrl-C within an expression that backtracks for ever', async () => {
    mirror('9', '1', 'stdout.log', 'b\n');
    mirror('9', '2', 'stdout.log', `${'a'.repeat(60)}b\n`);
    const args = [PROGRAM, 'grep', '^(?:b|(?:a|a)*$)', '9'];
    const child = spawn(process.execPath, args, { env: environment(), stdio: ['ignore', 'pipe', 'inherit'] });
    const [output] = (await once(child.stdout, 'data')) as [Buffer];
    expect(output.toString()).toBe('9/1 stdout:b\n');
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([null, 'SIGINT']);
    fs.rmSync(path.join(directory, 'mirror/9'), { recursive: true });
  });

  it('has bounded memory for a line of any length', () => {
    const file = mirror('10', '1', 'stdout.log', 'a very long line');
    fs.truncateSync(file, 512 * 1024 * 1024);
    fs.appendFileSync(file, '\nand the next\n');
    const child = spawnSync(process.execPath, ['--max-old-space-size=64', PROGRAM, 'grep', '-n', 'the next|^b', '10'], {
      env: environment(),
      encoding: 'utf8',
    });
    expect(child.stdout).toBe('10/1 stdout:2:and the next\n');
    fs.rmSync(path.join(directory, 'mirror/10'), { recursive: true });
  });
});

describe('agent grep on a terminal', needs('script'), () => {
  it('colours matches, and makes control characters visible', async (context) => {
    const run = async (env: Readonly<Record<string, string>>) => {
      const { AGENT_CONFIG } = environment();
      const terminal = new Terminal(['grep', 's.ep', '501', '--task', '10'], {
        context,
        cwd: directory,
        env: { AGENT_CONFIG, ...env },
      });
      expect(await terminal.ended).toBe(0);
      return terminal.text;
    };
    const match = '\u001b[1m\u001b[31mstep\u001b[39m\u001b[22m';
    const label = '\u001b[35m501/10 log\u001b[39m\u001b[36m:\u001b[39m';
    expect(await run({})).toBe(`${label}a \\u{001B}[2J${match}\r\n`);
    expect(await run({ NO_COLOR: '1' })).toBe('501/10 log:a \\u{001B}[2Jstep\r\n');
  });
});
