/** The completion of shells: what they offer for the beginnings of command lines. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { completionScript, SHELLS } from '../../../src/cli/completion.ts';
import { programOf } from '../../../src/cli/program.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { openOwnStore } from '../../../src/daemon/own-state.ts';
import type { JobId } from '../../../src/job.ts';
import { MINIMAL } from '../../config/files.ts';
import { SILENT } from '../../support/errors.ts';
import { needs } from '../../support/needs.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

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

/** The lines that a shell prints. */
function printedBy(directory: string, shell: string, ...args: readonly string[]): string[] {
  const env = { PATH: `${directory}:/usr/bin:/bin`, TERM: 'dumb', HOME: directory };
  const printed = execFileSync(shell, args, { encoding: 'utf8', env });
  return printed.split('\n').filter((line) => line !== '');
}

const BASH = `. "$1/bash"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _agent; printf '%s\\n' "\${COMPREPLY[@]}"`;
const fishOf = (directory: string, line: string) => `source ${directory}/fish; complete -C ${JSON.stringify(line)}`;

/** What the last word of a line is offered. */
describe.each([
  [
    'bash',
    (directory: string, line: string) =>
      printedBy(directory, 'bash', '--norc', '-c', BASH, 'bash', directory, ...line.split(' ')),
  ],
  [
    'fish',
    (directory: string, line: string) =>
      printedBy(directory, 'fish', '--no-config', '-c', fishOf(directory, line)).map((offer) =>
        offer.replace(/\t.*/, ''),
      ),
  ],
] as const)('the completion of %s', (shell, offersOf) => {
  it('offers commands, options, choices and jobs', needs(shell), async () => {
    const directory = await placeWithAgent();
    const offers = (line: string) => offersOf(directory, line);
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

it('the completion of zsh offers commands, options, choices and jobs', needs('zsh'), async () => {
  const directory = await placeWithAgent();
  fs.writeFileSync(path.join(directory, 'rc'), ZSH_RC);
  const complete = (...lines: readonly string[]) =>
    printedBy(directory, 'zsh', '-f', '-c', ZSH_DRIVER, 'zsh', ...lines).slice(1);
  const lines = [
    'agent stat',
    'agent completion fi',
    'agent tail --fo',
    'agent tail 501 --file stdo',
    'agent status 50',
  ];
  expect(complete(...lines).map((line) => line.trimEnd())).toEqual([
    'agent status',
    'agent completion fish',
    'agent tail --follow',
    'agent tail 501 --file stdout',
    // There are two of them.
    'agent status 50',
  ]);
});
