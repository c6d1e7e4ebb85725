/** Exit codes, for help and man page, and the completion scripts of shells. */
import type { Command, Option } from 'commander';
import { EXIT } from '../errors.ts';
import { wrapToColumns } from './show/terminal.ts';

/** The only place of these words: help, manual page and docs/json.md have them from here. */
export const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.ok, 'done. grep, errors: a line was found'],
  [
    EXIT.failed,
    'verify: a mismatch, or a file that is missing or not proven. sync, unwatch, wait: a file failed or is not proven. grep, errors: nothing was found. notify --test: a target failed',
  ],
  [EXIT.usage, 'wrong arguments. init: the file exists. grep, errors: any error'],
  [EXIT.config, 'wrong configuration. jobs, watch --mine: service.jobsUrl is missing'],
  [EXIT.locked, 'another agent uses the state directory, or its name in the fleet'],
  [EXIT.signIn, 'the sign-in failed'],
  [EXIT.service, 'the middleware failed, or is unreachable'],
  [EXIT.notFound, 'no such job, or the job is not followed. unwatch --mine: there was no watch --mine'],
  [EXIT.local, 'an error of this machine: permissions, disk, state. The database of the fleet failed'],
  [EXIT.jobFailed, 'wait: a job failed'],
  [EXIT.jobCanceled, 'wait: a job was canceled'],
  [EXIT.timeIsUp, 'wait: the time is up'],
  [EXIT.internal, 'a defect of the program'],
  [EXIT.interrupted, 'stopped by Ctrl-C. run, sandbox, view: 0 after a signal'],
  [EXIT.terminated, 'stopped by SIGTERM'],
  [EXIT.unread, 'the reader of the output went away before the command had its result'],
];

export function exitCodesHelp(columns: number): string {
  const lines = EXIT_CODES.flatMap(([code, meaning]) =>
    wrapToColumns(`  ${String(code).padEnd(4)} ${meaning}`, columns, 5),
  );
  return `\nExit codes (check: of the first step that fails):\n${lines.join('\n')}`;
}

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

export function completionScript(shell: Shell, { commands }: Command): string {
  return { bash, zsh, fish }[shell](commands);
}

/** With `--help`, which commander keeps separately. */
const optionsOf = (command: Command) => command.createHelp().visibleOptions(command);
const flagsOf = ({ short, long }: Option) => [short, long].filter((flag) => flag !== undefined);
const valueNameOf = ({ flags }: Option) => /[<[]([^\]>]+)[\]>]/.exec(flags)?.[1];
const takesJob = (command: Command) => command.registeredArguments.some((argument) => argument.name() === 'job');
const choicesOf = (command: Command) => command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);

/** Lists job ids in any shell. */
const JOBS = `agent status --json 2>/dev/null | sed -n 's/^ *"jobId": "\\(.*\\)",*$/\\1/p'`;

function bash(commands: readonly Command[]): string {
  const words = (list: readonly string[]) => `COMPREPLY=($(compgen -W '${list.join(' ')}' -- "$word"))`;
  return `# bash completion for agent: agent completion bash > /etc/bash_completion.d/agent
_agent() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    ${words([...commands.map((command) => command.name()), '--help', '--version'])}
    return
  fi
  case $command:$before in
${commands
  .flatMap((command) => optionsOf(command).map((option) => ({ name: command.name(), option })))
  .filter(({ option }) => valueNameOf(option) !== undefined)
  .map(({ name, option }) => {
    const flags = flagsOf(option).map((flag) => `${name}:${flag}`);
    return `    ${flags.join('|')}) ${replyOf(option)}; return ;;`;
  })
  .join('\n')}
  esac
  case $command in
${commands
  .map((command) => {
    const positional = takesJob(command) ? `$(${JOBS})` : choicesOf(command).join(' ');
    return `    ${command.name()}) if [[ $word == -* ]]; then ${words(optionsOf(command).flatMap(flagsOf))}; else COMPREPLY=($(compgen -W "${positional}" -- "$word")); fi ;;`;
  })
  .join('\n')}
  esac
}
complete -F _agent agent jobtail
`;
}

function replyOf(option: Option): string {
  const value = valueNameOf(option);
  const { argChoices: choices = [] } = option;
  if (value === 'file' && choices.length === 0) return 'COMPREPLY=($(compgen -f -- "$word"))';
  if (value === 'dir') return 'COMPREPLY=($(compgen -d -- "$word"))';
  return `COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$word"))`;
}

function zsh(commands: readonly Command[]): string {
  const plain = (text: string) => text.replaceAll("'", "'\\''").replaceAll(/[[\]:]/g, '\\$&');
  const action = (option: Option) => {
    const value = valueNameOf(option);
    const { argChoices: choices = [] } = option;
    if (value === undefined) return '';
    if (choices.length > 0) return `:${value}:(${choices.join(' ')})`;
    return `:${value}:${value === 'file' ? '_files' : value === 'dir' ? '_directories' : ' '}`;
  };
  const specs = (command: Command) => [
    ...optionsOf(command).flatMap((option) =>
      flagsOf(option).map((flag) => `'*${flag}[${plain(option.description)}]${action(option)}'`),
    ),
    ...command.registeredArguments.map((argument, index) => {
      const { argChoices: choices = [] } = argument;
      const offered = takesJob(command) ? '_agent_jobs' : choices.length > 0 ? `(${choices.join(' ')})` : ' ';
      return `'${index + 1}:${argument.name()}:${offered}'`;
    }),
  ];
  return `#compdef agent jobtail
# zsh completion for agent: agent completion zsh > "\${fpath[1]}/_agent"
_agent_jobs() {
  local -a jobs
  jobs=(\${(f)"$(${JOBS})"})
  compadd -a jobs
}
_agent() {
  local -a commands
  commands=(
${commands.map((command) => `    '${command.name()}:${plain(command.description())}'`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    _arguments '--help[display help]' '--version[the version]'
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${commands.map((command) => `    ${command.name()}) _arguments ${specs(command).join(' ')} ;;`).join('\n')}
  esac
}
if [ "$funcstack[1]" = _agent ]; then _agent "$@"; else compdef _agent agent jobtail; fi
`;
}

function fish(commands: readonly Command[]): string {
  const plain = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const of = (name: string) => `complete -c agent -n ${plain(`__fish_seen_subcommand_from ${name}`)}`;
  const value = (option: Option) => {
    const name = valueNameOf(option);
    const { argChoices: choices = [] } = option;
    if (name === undefined) return '';
    if (choices.length > 0) return ` -x -a ${plain(choices.join(' '))}`;
    return name === 'file' || name === 'dir' ? ' -r -F' : ' -x';
  };
  const lines = commands.flatMap((command) => [
    `complete -c agent -n __fish_use_subcommand -a ${command.name()} -d ${plain(command.description())}`,
    ...optionsOf(command).map((option) => {
      const short = option.short === undefined ? '' : ` -s ${option.short.slice(1)}`;
      return `${of(command.name())}${short} -l ${option.long?.slice(2)}${value(option)} -d ${plain(option.description)}`;
    }),
    ...(takesJob(command) ? [`${of(command.name())} -a '(__agent_jobs)'`] : []),
    ...(choicesOf(command).length > 0 ? [`${of(command.name())} -a ${plain(choicesOf(command).join(' '))}`] : []),
  ]);
  return `# fish completion for agent: agent completion fish > ~/.config/fish/completions/agent.fish
function __agent_jobs
  ${JOBS}
end
complete -c agent -f
${lines.join('\n')}
`;
}

export const FIRST_EXAMPLES = `jobtail follows the jobs of a cluster: their output while it grows, and their results.

  agent demo                    see it work, without a cluster
  agent init                    write a configuration for your middleware
  agent jobs                    list your jobs
  agent watch 501 --foreground  follow one, here, until Ctrl-C
`;

/** Without a command. */
export const SHORT_HELP = `${FIRST_EXAMPLES}
  agent run                     follow jobs as a daemon; then: agent watch 501
  agent status, agent tail -f   see what is followed, and its lines
  agent wait, agent verify      wait for the end of a job; prove its files

agent --help lists all commands, agent COMMAND --help the options of one.
`;

/** The errors of commander quote an argument twice. */
export const plainError = (text: string) =>
  text
    .replace(/^error: command-argument value '[\s\S]*?' is invalid for argument '[^']*'\. /, 'agent: ')
    .replace(/^error: option '.*?(--[\w-]+)[^']*' argument '[\s\S]*?' is invalid\. /, 'agent: $1: ')
    .replace(/^error: /, 'agent: ');

export const examples = (...lines: readonly string[]) =>
  `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.map((line) => `  ${line}`).join('\n')}`;
