/** The man page, in roff, made of the commands themselves (scripts/make-man.mjs writes it to docs/agent.1). */
import type { CommandText, OptionText } from './command-tree.ts';

export interface ManPageOptions {
  readonly version: string;
  readonly description: string;
  readonly commands: readonly CommandText[];
  /** What each exit code means. */
  readonly exitCodes: readonly (readonly [code: number, meaning: string])[];
}

export function manPage({ version, description, commands, exitCodes }: ManPageOptions): string {
  const lines = [
    '.\\" Made by scripts/make-man.mjs from the commands themselves: change those.',
    `.TH AGENT 1 "" ${quoted(`jobtail ${version}`)} "User Commands"`,
    '.SH NAME',
    'agent \\- byte\\-exact mirrors of the live files of cluster jobs',
    '.SH SYNOPSIS',
    ...commands.flatMap(synopsis),
    '.SH DESCRIPTION',
    plain(description),
    '.PP',
    plain(
      'The mirrors of a job are <mirror>/<job>/live/<task>/{stdout,stderr,log,progress}.log, its results are below ' +
        '<mirror>/<job>/results. A live mirror is only ever appended to; when the remote file was rewritten, the old ' +
        'bytes are kept as stdout.log.1, .2, ... first.',
    ),
    '.SH COMMANDS',
    ...commands.flatMap(section),
    '.SH EXIT STATUS',
    ...exitCodes.flatMap(([code, meaning]) => ['.TP', `.B ${code}`, plain(meaning)]),
    '.SH FILES',
    ...item('./config.yaml, /etc/agent/config.yaml', 'the configuration, if neither \\-c nor $AGENT_CONFIG names one'),
    ...item('/var/lib/agent/state', 'the state, unless state.directory says otherwise'),
    ...item('/var/lib/agent/mirror', 'the mirrors, unless mirror.directory says otherwise'),
    '.SH ENVIRONMENT',
    ...item('AGENT_CONFIG', 'the configuration, if there is no \\-c'),
    ...item('NO_COLOR', 'no colours'),
    '.SH SIGNALS',
    ...item('SIGTERM, SIGINT', 'end in order; a second one ends at once'),
    ...item('SIGHUP', 'agent run reads the configuration, certificates and secrets anew'),
    '.SH SEE ALSO',
    '.BR systemctl (1),',
    '.BR journalctl (1),',
    '.BR tail (1)',
  ];
  return `${lines.join('\n')}\n`;
}

function synopsis({ name, arguments: wanted }: CommandText): string[] {
  const given = wanted.map(({ name: argument, required }) =>
    required ? `\\fI${argument}\\fR` : `[\\fI${argument}\\fR]`,
  );
  return [`.B agent ${name}`, `${['[\\fIoptions\\fR]', ...given].join(' ')}`, '.br'];
}

function section({ name, description, options }: CommandText): string[] {
  return [`.SS agent ${name}`, plain(sentence(description)), ...options.flatMap(optionLines)];
}

function optionLines({ short, long, value, description, choices }: OptionText): string[] {
  const flags = [short, long].flatMap((flag) => (flag === undefined ? [] : [`\\fB${plain(flag)}\\fR`])).join(', ');
  const said = choices.length === 0 ? description : `${description}: ${choices.join(', ')}`;
  return ['.TP', `${flags}${value === undefined ? '' : ` \\fI${plain(value)}\\fR`}`, plain(said)];
}

const item = (name: string, text: string) => ['.TP', `.I ${plain(name)}`, text];
const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
const quoted = (text: string) => `"${text.replaceAll('"', '')}"`;

/** Text in which roff sees nothing of its own. */
function plain(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/, '\\&$1');
}
