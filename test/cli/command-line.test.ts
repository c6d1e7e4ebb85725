/** What is made of the commands: help, completion, the man page. */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { parseSince } from '../../src/cli/arguments.ts';
import { completionScript, SHELLS } from '../../src/cli/completion.ts';
import { programOf } from '../../src/cli/program.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openOwnStore } from '../../src/daemon/state.ts';
import type { JobId } from '../../src/job.ts';
import { MINIMAL } from '../config/files.ts';
import { needs } from '../support/needs.ts';
import { SILENT } from '../support/silent-log.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { READS_TYPESCRIPT } from '../support/typescript-hook.ts';

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
  for (const args of [['status', 'a\u001b]52;c;x\u0007'], ['a\u001b[2J\u009b']])
    expect(errorOf(...args)).toMatch(/^[ -~]+$/);
});

/** What a command line prints, with its exit code. */
function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const inherited = { PATH: process.env['PATH'] ?? '', NO_COLOR: '1' };
  const options = { encoding: 'utf8', cwd: temporaryDirectory(), env: { ...inherited, ...env } } as const;
  const { stdout, stderr, status } = spawnSync(`${ROOT}bin/jobtail`, args, options);
  return { stdout, stderr, status };
}

describe('the command line', () => {
  it('is short without arguments, and fails for an unknown command, also with help', () => {
    const none = run([]);
    expect(none).toMatchObject({ status: 2, stdout: '' });
    expect(none.stderr.split('\n').length).toBeLessThanOrEqual(14);
    for (const args of [
      ['help', 'statsu'],
      ['statsu', '--help'],
      ['-c', 'x', 'statsu', '-h'],
    ]) {
      const { status, stderr } = run(args);
      expect(status).toBe(2);
      expect(stderr).toMatch(/^agent: unknown command 'statsu'\n\(Did you mean status\?\)/);
    }
    expect(run(['-c', 'x'])).toEqual(none);
    for (const args of [['help'], ['--help'], ['help', 'help'], ['help', 'status'], ['help', 'json']]) {
      const { stdout, ...ended } = run(args);
      expect(ended).toEqual({ status: 0, stderr: '' });
      expect(stdout).toContain(args[1] === 'json' ? '# Output for programs' : 'Usage: agent');
      if (args[1] !== 'json')
        expect(stdout.split('\n').filter((line) => line.length > 80 && !line.startsWith('('))).toEqual([]);
    }
  });

  it('takes the configuration before and after the command, and from the home of the user', () => {
    const home = temporaryDirectory();
    for (const args of [
      ['-c', '/none.yaml', 'status'],
      ['--config', '/none.yaml', '--no-color', 'grep', '-c', 'x'],
      ['status', '-c', '/none.yaml', '--no-color'],
    ])
      expect(run(args).stderr).toContain('/none.yaml: there is no such file');
    const { status, stderr } = run(['status'], { XDG_CONFIG_HOME: home });
    expect(status).toBe(3);
    if (process.geteuid?.() !== 0) expect(stderr).toContain(`${home}/jobtail/config.yaml`);
  });

  it('asks for the unit of a time', () => {
    for (const args of [
      ['wait', '501', '--timeout', '30'],
      ['tail', '501', '--since', '30'],
    ])
      expect(run(args)).toMatchObject({ status: 2, stderr: expect.stringContaining('"30" has no unit: 30m or 30s?') });
  });
});

it('the page of the configuration is the one that scripts/make-configuration.mjs makes', () => {
  expect(fs.readFileSync(`${ROOT}docs/configuration.md`, 'utf8')).toBe(
    execFileSync(process.execPath, [...READS_TYPESCRIPT, `${ROOT}scripts/make-configuration.mjs`], {
      encoding: 'utf8',
    }),
  );
});

describe('the man page', () => {
  it('is the one that scripts/make-man.mjs makes', () => {
    expect(fs.readFileSync(`${ROOT}docs/agent.1`, 'utf8')).toBe(
      execFileSync(process.execPath, [...READS_TYPESCRIPT, `${ROOT}scripts/make-man.mjs`], { encoding: 'utf8' }),
    );
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

/** A program `agent` that follows two jobs, for a shell to find. */
async function placeWithAgent(): Promise<string> {
  const directory = temporaryDirectory();
  const file = path.join(directory, 'config.yaml');
  fs.writeFileSync(file, `${MINIMAL}mirror: {directory: m}\nstate: {directory: state}\n`);
  const { store, close } = openOwnStore(await loadConfig(file), SILENT);
  for (const jobId of ['501', '502'] as JobId[])
    store.jobs.watch({ jobId, tasks: [], files: [], results: true, settleAfterMs: null, source: 'command' }, 1);
  close();
  const script = `#!/bin/sh\nAGENT_CONFIG='${file}' exec '${ROOT}bin/agent' "$@"\n`;
  fs.writeFileSync(path.join(directory, 'agent'), script, { mode: 0o755 });
  for (const shell of SHELLS) fs.writeFileSync(path.join(directory, shell), completionScript(shell));
  return directory;
}

/** Words that a shell offers for the last word of a line. */
type Offers = (line: string) => string[];

function bashOffers(directory: string): Offers {
  const script = `. "$1/bash"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _agent; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return (line) =>
    execFileSync('bash', ['--norc', '-c', script, 'bash', directory, ...line.split(' ')], {
      encoding: 'utf8',
      env: { PATH: `${directory}:/usr/bin:/bin` },
    })
      .split('\n')
      .filter((word) => word !== '');
}

function fishOffers(directory: string): Offers {
  return (line) =>
    execFileSync('fish', ['--no-config', '-c', `source ${directory}/fish; complete -C ${JSON.stringify(line)}`], {
      encoding: 'utf8',
      env: { PATH: `${directory}:/usr/bin:/bin`, HOME: directory },
    })
      .split('\n')
      .flatMap((offer) => (offer === '' ? [] : [offer.split('\t')[0] ?? '']));
}

describe.each([
  ['bash', bashOffers],
  ['fish', fishOffers],
] as const)('the completion of %s', (shell, offersOf) => {
  it('offers commands, options, choices and jobs', needs(shell), async () => {
    const offers = offersOf(await placeWithAgent());
    const names = programOf().commands.map((command) => command.name());
    expect(offers('agent ')).toEqual(expect.arrayContaining(names));
    expect(offers('agent st')).toEqual(['status']);
    expect(offers('agent status --')).toEqual(expect.arrayContaining(['--watch', '--json', '--config', '--help']));
    expect(offers('agent tail --fo')).toEqual(['--follow']);
    expect(offers('agent tail 501 --file std').sort()).toEqual(['stderr', 'stdout']);
    expect(offers('agent tail ')).toEqual(expect.arrayContaining(['501', '502']));
    expect(offers('agent completion z')).toEqual(['zsh']);
    expect(offers('agent init --method cl')).toEqual(['cloud-platform']);
  });
});

/** zsh completes only on a terminal: it gets one, is sent a line, TAB and Ctrl-X, and writes down what became of it. */
const ZSH_RC = `unset zle_bracketed_paste
autoload -U compinit; compinit -D -u
source $HOME/zsh
said() { print -r -- "$BUFFER" >> $HOME/said; zle kill-whole-line }
zle -N said; bindkey '^X' said
print ready >> $HOME/said
`;
const ZSH_DRIVER = `zmodload zsh/zpty
touch $HOME/said
typed() {
  local i
  for i in {1..400}; do
    zpty -r -t z junk
    [[ $(wc -l < $HOME/said) -ge $1 ]] && return
    sleep 0.05
  done
  exit 1
}
zpty z 'zsh -f -i'
zpty -w z 'source $HOME/rc'
typed 1
n=1
for line in "$@"; do
  zpty -w -n z "$line"$'\\t\\x18'
  typed $(( ++n ))
done
cat $HOME/said
`;

describe('the completion of zsh', () => {
  it('offers commands, options, choices and jobs', needs('zsh'), async () => {
    const directory = await placeWithAgent();
    fs.writeFileSync(path.join(directory, 'rc'), ZSH_RC);
    const complete = (...lines: readonly string[]) =>
      execFileSync('zsh', ['-f', '-c', ZSH_DRIVER, 'zsh', ...lines], {
        encoding: 'utf8',
        env: { PATH: `${directory}:/usr/bin:/bin`, TERM: 'dumb', HOME: directory },
      })
        .split('\n')
        .slice(1, -1)
        .map((line) => line.trimEnd());
    const lines = [
      'agent stat',
      'agent completion fi',
      'agent tail --fo',
      'agent tail 501 --file stdo',
      'agent status 50',
    ];
    expect(complete(...lines)).toEqual([
      'agent status',
      'agent completion fish',
      'agent tail --follow',
      'agent tail 501 --file stdout',
      // There are two of them.
      'agent status 50',
    ]);
  });
});

describe('a moment', () => {
  it('is a time ago or a date, and nothing else', () => {
    const now = Date.parse('2026-03-01T12:00:00Z');
    expect(parseSince('90s', now)).toBe(now - 90_000);
    expect(parseSince('1.5h', now)).toBe(now - 5_400_000);
    expect(parseSince('2d', now)).toBe(now - 172_800_000);
    expect(parseSince('2026-02-28T00:00:00Z', now)).toBe(Date.parse('2026-02-28T00:00:00Z'));
    for (const text of ['', '90', 'yesterday', '10 m', '-5m', '5w', '2026-99-99', 'Monday 1']) {
      expect(parseSince(text, now), text).toBeUndefined();
    }
  });
});
