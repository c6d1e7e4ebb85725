// Prints the man page, in roff, made of the commands of the program themselves:
// `node --import ./scripts/typescript.mjs scripts/make-man.mjs > docs/agent.1`. A test holds the file against what this
// prints.
import { EXIT_CODES } from '../src/cli/help.ts';
import { programOf } from '../src/cli/program.ts';

const program = programOf();

/** Text in which roff sees nothing of its own. */
const plain = (text) =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/, '\\&$1');
const item = (name, text) => ['.TP', `.I ${plain(name)}`, text];
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

const synopsis = (command) => {
  const given = command.registeredArguments.map((argument) => {
    const name = `\\fI${argument.name()}\\fR${argument.variadic ? '...' : ''}`;
    return argument.required ? name : `[${name}]`;
  });
  return [`.B agent ${command.name()}`, ['[\\fIoptions\\fR]', ...given].join(' '), '.br'];
};

const optionLines = ({ short, long, flags, description, argChoices = [], defaultValue, defaultValueDescription }) => {
  const names = [short, long].flatMap((flag) => (flag === undefined ? [] : [`\\fB${plain(flag)}\\fR`])).join(', ');
  const value = /[<[]([^\]>]+)[\]>]/.exec(flags)?.[1];
  const choices = argChoices.length === 0 ? '' : `: ${argChoices.join(', ')}`;
  const usual = defaultValueDescription ?? (typeof defaultValue === 'boolean' ? undefined : defaultValue);
  const said = `${description}${choices}${usual === undefined ? '' : ` (default: ${usual})`}`;
  return ['.TP', value === undefined ? names : `${names} \\fI${plain(value)}\\fR`, plain(said)];
};

/** The lines below the options of its help. */
const examplesOf = (command) => {
  let text = '';
  command.configureOutput({ writeOut: (written) => (text += written) });
  command.outputHelp();
  const [, lines = ''] = text.split(/\nExamples?:\n/);
  return lines.trimEnd().split('\n').map(plain);
};

const section = (command) => {
  const options = command.createHelp().visibleOptions(command);
  const args = command.registeredArguments.flatMap(({ description, argChoices = [], ...argument }) => [
    ...['.TP', `\\fI${argument._name}\\fR`],
    plain(argChoices.length === 0 ? description : `${description}: ${argChoices.join(', ')}`),
  ]);
  const shown = [plain(sentence(command.description())), ...args, ...options.flatMap(optionLines)];
  return [`.SS agent ${command.name()}`, ...shown, '.PP', 'Examples:', '.nf', ...examplesOf(command), '.fi'];
};

const lines = [
  '.\\" Made by scripts/make-man.mjs from the commands themselves: change those.',
  `.TH AGENT 1 "" "jobtail ${program.version()}" "User Commands"`,
  '.SH NAME',
  'agent, jobtail \\- byte\\-exact mirrors of the live files of cluster jobs',
  '.SH SYNOPSIS',
  ...program.commands.flatMap(synopsis),
  '.SH DESCRIPTION',
  plain(program.description()),
  '.PP',
  plain(
    'The mirrors of a job are <mirror>/<job>/live/<task>/{stdout,stderr,log,progress}.log, its results are below ' +
      '<mirror>/<job>/results. When the remote file was truncated or rewritten, the old bytes are copied to ' +
      'stdout.log.1, .2, ..., and the mirror starts again in place.',
  ),
  '.SH COMMANDS',
  ...program.commands.flatMap(section),
  '.SH EXIT STATUS',
  ...EXIT_CODES.flatMap(([code, meaning]) => ['.TP', `.B ${code}`, plain(meaning)]),
  '.SH FILES',
  ...item(
    '$XDG_CONFIG_HOME/jobtail/config.yaml, /etc/agent/config.yaml',
    'the configuration, if neither \\-c nor $AGENT_CONFIG names one; the first of these that exists',
  ),
  ...item(
    '/var/lib/agent/state, /var/lib/agent/mirror',
    'state and mirrors, unless state.directory and mirror.directory name others. agent init does: ' +
      '~/.local/state/jobtail and ~/.local/share/jobtail/mirror, with \\-\\-service /srv/agent for the mirrors',
  ),
  ...item(
    '/run/agent/read.sock, control.sock',
    'where members of the group, and programs, ask the agent, unless api.directory names another directory',
  ),
  '.SH ENVIRONMENT',
  ...item('AGENT_CONFIG', 'the configuration, if there is no \\-c'),
  ...item('NO_COLOR, FORCE_COLOR', 'no colours; colours in pipes, too'),
  ...item('COLUMNS', 'the width of lines in a pipe'),
  ...item(
    'XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME',
    'where the places of a user are, in place of those below ~',
  ),
  ...item('XDG_RUNTIME_DIR, RUNTIME_DIRECTORY', 'where temporary keys are during a transfer'),
  ...item('CREDENTIALS_DIRECTORY', 'where systemd put the credentials that the configuration names'),
  ...item('NODE_EXTRA_CA_CERTS', 'a file with more certificates that receivers of webhooks may have'),
  '.SH SIGNALS',
  ...item('SIGTERM, SIGINT', 'end in order; a second one ends at once'),
  ...item('SIGHUP', 'agent run reads the configuration, certificates and secrets anew'),
  '.SH SEE ALSO',
  '.BR systemctl (1),',
  '.BR journalctl (1),',
  '.BR tail (1)',
];
process.stdout.write(`${lines.join('\n')}\n`);
