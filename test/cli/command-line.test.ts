/** What is made of the commands: help and the man page. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it, vi } from 'vitest';
import { programOf } from '../../src/cli/program.ts';
import { needs } from '../support/needs.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The help of a command as people see it, with what stands below it. */
function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (written) => (text += written) });
  command.outputHelp();
  return text;
}

it('the help has an example for every command, and --quiet, --verbose and --debug where it takes a configuration', () => {
  for (const command of programOf().commands) {
    expect(helpOf(command), command.name()).toMatch(/\nExamples?:\n {2}\S/);
    const hasConfig = command.options.some(({ short }) => short === '-c');
    const longs = command.options.map(({ long }) => long);
    if (hasConfig && command.name() !== 'grep')
      expect(longs, command.name()).toEqual(expect.arrayContaining(['--quiet', '--verbose', '--debug']));
  }
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
