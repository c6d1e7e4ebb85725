/** What is made of the commands: help and the man page. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it, vi } from 'vitest';
import { programOf } from '../../src/cli/program.ts';
import { PROGRAM } from '../support/e2e-program.ts';
import { needs } from '../support/needs.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The help of a command as people see it, with what stands below it. */
function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (written) => (text += written) });
  command.outputHelp();
  return text;
}

describe('the help', () => {
  it('has an example for every command', () => {
    for (const command of programOf().commands) {
      expect(helpOf(command), command.name()).toMatch(/\nExamples?:\n {2}\S/);
    }
  });
});

/** What a command line prints, with its exit code. */
function run(args: readonly string[], cwd: string) {
  const options = { encoding: 'utf8', cwd, env: { PATH: process.env['PATH'] ?? '', NO_COLOR: '1' } } as const;
  const { stdout, stderr, status } = spawnSync(process.execPath, [PROGRAM, ...args], options);
  return { stdout, stderr, status };
}

describe('the command line', () => {
  it('has --quiet, --verbose and --debug for each command that takes a configuration', () => {
    for (const command of programOf().commands.filter(({ options }) => options.some(({ short }) => short === '-c'))) {
      const longs = command.options.map(({ long }) => long);
      for (const option of ['--quiet', '--verbose', '--debug'])
        if (command.name() !== 'grep') expect(longs, command.name()).toContain(option);
    }
  });

  it('runs no program of a result that is called config.yaml, in its directory and by name', () => {
    const results = `${temporaryDirectory()}/mirror/501/results/503`;
    fs.mkdirSync(results, { recursive: true });
    const auth = `{username: a, passwordCommand: [touch, ${results}/ran]}`;
    const service = '{protocol: rest, baseUrl: "http://127.0.0.1:9"}';
    fs.writeFileSync(`${results}/config.yaml`, `service: ${service}\nauth: ${auth}\nstate: {directory: state}\n`);
    const found = run(['jobs'], results);
    expect(found).toMatchObject({ status: 3, stdout: '' });
    expect(found.stderr).toContain('./config.yaml is used only by name: add -c config.yaml');
    const named = run(['jobs', '-c', 'config.yaml'], results);
    expect(named).toMatchObject({ status: 3, stdout: '' });
    expect(named.stderr).toContain('this file is no configuration: it is in a directory of job 501');
    expect(fs.readdirSync(results)).toEqual(['config.yaml']);
  });
});

/** What a script prints, in this process. */
async function printedBy(script: string): Promise<string> {
  let text = '';
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((written) => {
    text += String(written);
    return true;
  });
  await import(`${ROOT}scripts/${script}`).finally(() => spy.mockRestore());
  return text;
}

it('the page of the configuration is the one that scripts/make-configuration.mjs makes', async () => {
  expect(fs.readFileSync(`${ROOT}docs/configuration.md`, 'utf8')).toBe(await printedBy('make-configuration.mjs'));
});

describe('the man page', () => {
  it('is the one that scripts/make-man.mjs makes', async () => {
    expect(fs.readFileSync(`${ROOT}docs/agent.1`, 'utf8')).toBe(await printedBy('make-man.mjs'));
  });

  it('is read without a complaint, and has every command and option', needs('man'), () => {
    const { stdout, stderr } = spawnSync('man', ['--warnings', '-E', 'UTF-8', '-l', `${ROOT}docs/agent.1`], {
      encoding: 'utf8',
      env: { ...process.env, MANWIDTH: '200', LC_ALL: 'C.UTF-8' },
    });
    expect(stderr).toBe('');
    for (const command of programOf().commands) {
      expect(stdout).toContain(`agent ${command.name()}`);
      for (const { long } of [...command.options, { long: '--help' }]) expect(stdout).toContain(long);
    }
  });
});

it('each value of the command line has a reader, but those that are texts', () => {
  const values = programOf().commands.flatMap((command) => [
    ...command.options.filter(({ required, optional }) => required || optional).map((option) => ({ command, option })),
    ...command.registeredArguments.map((option) => ({ command, option })),
  ]);
  const texts = values
    .filter(({ option }) => (option as { parseArg?: unknown }).parseArg === undefined)
    .map(({ command, option }) => `${command.name()} ${'long' in option ? option.long : option.name()}`);
  expect(texts.filter((text) => !text.endsWith(' --config')).join('\n')).toMatchInlineSnapshot(`
    "grep args
    init --output
    init --url
    init --namespace
    init --base-url
    init --username
    init --secret-file
    help name
    report --output
    report --log
    sandbox --directory
    sandbox --release
    demo --release"
  `);
});
