/** What is made of the commands: help and the man page. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it, vi } from 'vitest';
import { parseSince } from '../../src/cli/arguments.ts';
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

  it('guesses what an unknown word was meant to be', () => {
    let said = '';
    const program = programOf();
    for (const command of [program, ...program.commands])
      command.configureOutput({ writeErr: (text) => (said += text) });
    expect(() => program.parse(['statsu'], { from: 'user' })).toThrow();
    expect(said).toContain('Did you mean status?');
    expect(() => program.parse(['status', '--jsno'], { from: 'user' })).toThrow();
    expect(said).toContain('Did you mean --json?');
  });
});

it('an invalid argument is quoted once, after the name of its option', () => {
  const errorOf = (...args: readonly string[]) => {
    let said = '';
    const program = programOf();
    for (const command of [program, ...program.commands])
      command.configureOutput({ ...command.configureOutput(), writeErr: (text) => (said += text) });
    expect(() => program.parse(args, { from: 'user' })).toThrow();
    return said.split('\n')[0];
  };
  expect(errorOf('tail', 'abc')).toBe('agent: "abc" is no job id: a whole number from 1 to 2^63 - 1 was expected.');
  expect(errorOf('tail', '501', '-n', 'x')).toBe('agent: --lines: "x" is no number of lines, nor "all".');
  expect(errorOf('demo', '--seconds', '9000')).toBe('agent: --seconds: "9000" is no number of seconds from 1 to 3600.');
  for (const args of [
    ['wait', '501', '--timeout', '30'],
    ['tail', '501', '--since', '30'],
  ])
    expect(errorOf(...args)).toContain('"30" has no unit: 30s, 30m, 30h or 30d?');
  for (const name of ['.x', '../x', 'a/b', 'a b', 'x'.repeat(65)])
    expect(errorOf('init', '--service', name)).toContain('is no name of an instance');
  for (const option of ['--json', '--quiet'])
    expect(errorOf('watch', '--mine', option)).toMatch(/'--mine' cannot be used with option '.*--(?:json|quiet)'/);
  for (const option of ['--json', '--quiet', '--no-wait'])
    expect(errorOf('watch', '501', '--foreground', option)).toContain("'--foreground' cannot be used with option");
  for (const args of [['status', 'a\u001b]52;c;x\u0007'], ['a\u001b[2J\u009b']])
    expect(errorOf(...args)).toMatch(/^[ -~]+$/);
});

/** What a command line prints, with its exit code. */
function run(args: readonly string[], env: Readonly<Record<string, string>> = {}, cwd = temporaryDirectory()) {
  const inherited = { PATH: process.env['PATH'] ?? '', NO_COLOR: '1' };
  const options = { encoding: 'utf8', cwd, env: { ...inherited, ...env } } as const;
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
    // The only finding is a failure.
    expect(run(['check', '-q', '-c', 'nothing.yaml'])).toMatchObject({ status: 3, stdout: '' });
    expect(run(['check', '-q', '-c', 'nothing.yaml']).stderr).toMatch(/^(?:✗|x) configuration .*nothing\.yaml/);
    expect(run(['version', '-q']).stderr).toContain("unknown option '-q'");
  });

  it('is short without arguments, and fails for an unknown command, also with help', () => {
    const none = run([]);
    expect(none).toMatchObject({ status: 2, stdout: '' });
    expect(none.stderr.split('\n').length).toBeLessThanOrEqual(14);
    for (const args of [
      ['help', 'statsu'],
      ['-c', 'x', 'statsu', '-h'],
    ]) {
      const { status, stderr } = run(args);
      expect(status).toBe(2);
      expect(stderr).toMatch(/^agent: unknown command 'statsu'\n\(Did you mean status\?\)/);
    }
    expect(run(['help', 'nosuch']).stderr).toMatch(
      /^agent: unknown command 'nosuch'\n\n?Pages [^\n]*\n {2}commands, .*troubleshooting/s,
    );
    expect(run(['completion', 'tcsh']).stderr).toMatch(/^agent: "tcsh" is none of these\. Allowed choices are bash/);
    expect(run(['run', '--log-level', 'loud']).stderr).toMatch(/^agent: "loud" is none of these\. Allowed choices are/);
    expect(run(['-c', 'x'])).toEqual(none);
    const noJob = 'agent: "nojob" is no job id: a whole number from 1 to 2^63 - 1 was expected.';
    expect(run(['grep', 'x', 'nojob'])).toMatchObject({ status: 2, stdout: '', stderr: `${noJob}\n` });
    for (const args of [['help'], ['help', 'status'], ['help', 'json'], ['help', 'results'], ['help', 'view.md']]) {
      const { stdout, ...ended } = run(args);
      expect(ended).toEqual({ status: 0, stderr: '' });
      const page = { json: 'OUTPUT FOR PROGRAMS', 'view.md': 'THE VIEW IN A BROWSER' }[args[1] ?? ''];
      expect(stdout).toContain(page ?? 'Usage: agent');
      if (args[1] === 'results') expect(stdout).toContain('\nThe page of the documents: agent help results.md\n');
      if (page === undefined)
        expect(stdout.split('\n').filter((line) => line.length > 80 && !line.startsWith('('))).toEqual([]);
    }
  });

  it('takes the configuration before and after the command, and from the home of the user', () => {
    const home = temporaryDirectory();
    for (const args of [
      ['--config', '/none.yaml', '--no-color', 'grep', '-c', 'x'],
      ['status', '-c', '/none.yaml', '--no-color'],
    ])
      expect(run(args).stderr).toContain('/none.yaml: there is no such file');
    const { status, stderr } = run(['status'], { XDG_CONFIG_HOME: home });
    expect(status).toBe(3);
    expect(stderr).toContain(`${home}/jobtail/config.yaml`);
  });

  it('runs no program of a result that is called config.yaml, in its directory and by name', () => {
    const results = `${temporaryDirectory()}/mirror/501/results/503`;
    fs.mkdirSync(results, { recursive: true });
    const auth = `{username: a, passwordCommand: [touch, ${results}/ran]}`;
    const service = '{protocol: rest, baseUrl: "http://127.0.0.1:9"}';
    fs.writeFileSync(`${results}/config.yaml`, `service: ${service}\nauth: ${auth}\nstate: {directory: state}\n`);
    const found = run(['jobs'], {}, results);
    expect(found).toMatchObject({ status: 3, stdout: '' });
    expect(found.stderr).toContain('./config.yaml is used only by name: add -c config.yaml');
    const named = run(['jobs', '-c', 'config.yaml'], {}, results);
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

it('a moment is a time ago or a date, and nothing else', () => {
  const now = Date.parse('2026-03-01T12:00:00Z');
  expect(parseSince('90s', now)).toBe(now - 90_000);
  expect(parseSince('1.5h', now)).toBe(now - 5_400_000);
  expect(parseSince('2d', now)).toBe(now - 172_800_000);
  expect(parseSince('2026-02-28T00:00:00Z', now)).toBe(Date.parse('2026-02-28T00:00:00Z'));
  for (const text of ['', '90', 'yesterday', '10 m', '-5m', '5w', '2026-99-99', 'Monday 1']) {
    expect(parseSince(text, now), text).toBeUndefined();
  }
});
