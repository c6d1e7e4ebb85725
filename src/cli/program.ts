/**
 * The command line: names, arguments and help of the commands. What they do is in commands/, and is loaded when it is
 * needed: help, completion and the status need little of the program.
 */
import v8 from 'node:v8';
import { Argument, Command, Option } from 'commander';
import { API_KEY, AUTH_METHODS } from '../auth.ts';
import { LIVE_FILE_NAMES } from '../job.ts';
import {
  collect,
  daysArgument,
  fileArgument,
  jobArgument,
  jobsArgument,
  jobUnlessMine,
  linesArgument,
  patternArgument,
  portArgument,
  projectArgument,
  secondsArgument,
  sinceArgument,
  taskArgument,
} from './arguments.ts';
import { completionScript, exitCodesHelp, SHELLS } from './help.ts';
import { endWhenUnread, versionOfProgram } from './process.ts';

export function programOf(): Command {
  const program = new Command('agent')
    .description('Keeps byte-exact local mirrors of the live files of cluster jobs, and syncs their results.')
    .version(versionOfProgram())
    .addHelpText('after', exitCodesHelp())
    .showHelpAfterError('(for help: agent --help, agent COMMAND --help)')
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'agent: ')) })
    .exitOverride();
  // The demo puts away what it made; everything else may just end.
  program.hook('preAction', (_, action) => {
    if (action.name() !== 'demo') endWhenUnread();
  });
  addFollowing(program);
  addLooking(program);
  addPasses(program);
  addSetup(program);
  addHelp(program);
  addTryOut(program);
  return program;
}

function addFollowing(program: Command): void {
  command(program, 'run', 'follow the watched jobs until stopped (the daemon, in the foreground)')
    .option('--drain', 'in a fleet: have the agent that runs hand its jobs over to the others and end')
    .addHelpText('after', examples('agent run', 'agent run -c /etc/agent/config.yaml'))
    .action(async (options) => (await loaded(import('./commands/run.ts'))).run(options));

  command(program, 'watch', 'follow a job, or all jobs of the user, and print the paths of its mirrors')
    .argument('[job]', 'id of the job', jobArgument)
    .addOption(taskOption('a task of the job whose live files are followed (repeatable)', 'all, which are found'))
    .addOption(fileOption())
    .option('--no-results', 'leave the result files of the job alone')
    .option('--no-wait', 'do not wait up to ten seconds for the first poll of its tasks')
    .option('--foreground', 'follow it right here, while no agent runs, and show its lines')
    .addOption(mineOption('every job of the user, as it is submitted, until it is settled'))
    .addOption(patternOption('--include <pattern>', 'with --mine: only jobs with such a name (repeatable)', 'all'))
    .addOption(patternOption('--exclude <pattern>', 'with --mine: no job with such a name (repeatable)', 'none'))
    .addOption(
      new Option('--max-age <days>', 'with --mine: no job that ended longer ago (default: 1)').argParser(daysArgument),
    )
    .addOption(
      new Option('--most-jobs <number>', 'with --mine: so many at a time (default: watchMine.mostJobs, 200)').argParser(
        jobsArgument,
      ),
    )
    .addHelpText(
      'after',
      examples(
        'agent watch 501',
        'agent watch 501 --task 9001 --task 9002',
        'agent watch 501 --foreground',
        'tail -F $(agent watch 501 --file stdout)',
        "agent watch --mine --include 'heat-*' --exclude '*-test'",
      ),
    )
    .action(async (job, options) => {
      const jobId = jobUnlessMine(job, options);
      if (jobId !== undefined) await (await loaded(import('./commands/watch.ts'))).watch(jobId, options);
      else await (await loaded(import('./commands/watch-mine.ts'))).watchMine(options);
    });

  command(program, 'unwatch', 'one last complete pass over a job, then follow it no longer; its files stay')
    .argument('[job]', 'id of the job', jobArgument)
    .option('--now', 'without the last pass')
    .addOption(mineOption('take no new jobs of the user; those that are followed stay so until they are settled'))
    .addHelpText('after', examples('agent unwatch 501', 'agent unwatch 501 --now', 'agent unwatch --mine'))
    .action(async (job, options) => {
      const jobId = jobUnlessMine(job, options);
      if (jobId !== undefined) await (await loaded(import('./commands/sync.ts'))).unwatch(jobId, options);
      else await (await loaded(import('./commands/watch-mine.ts'))).unwatchMine(options);
    });
}

function addLooking(program: Command): void {
  command(program, 'jobs', 'list the jobs of the user in the middleware, and which of them are followed')
    .option('--json', 'for programs (version 1)')
    .addHelpText('after', examples('agent jobs', "agent jobs --json | jq -r '.jobs[] | [.jobId, .jobState] | @tsv'"))
    .action(async (options) => (await loaded(import('./commands/jobs.ts'))).jobs(options));

  command(program, 'status', 'what is followed and how it stands')
    .argument('[job]', 'id of a job', jobArgument)
    .option('-w, --watch', 'again every second, in place, until Ctrl-C')
    .option('--json', 'for programs (version 1)')
    .addHelpText('after', examples('agent status', 'agent status 501', 'agent status --watch', 'agent status --json'))
    .action(async (job, options) => (await loaded(import('./commands/status.ts'))).status(job, options));

  command(program, 'tail', 'the lines of the live files of a job, with or without a running agent')
    .argument('<job>', 'id of the job', jobArgument)
    .option('-f, --follow', 'go on until the job is settled or ended, or until Ctrl-C')
    .option('-n, --lines <number>', 'so many last lines of each file, or "all"', linesArgument, 10)
    .addOption(taskOption('only this task (repeatable)', 'all'))
    .addOption(fileOption())
    .option(
      '--since <time>',
      'only files that grew since: 90s, 10m, 2h, 1d, or 2026-03-01T12:00 (lines have no times)',
      sinceArgument,
    )
    .option('--raw', 'as the job wrote it, with every control character; use it for files you trust')
    .option('--no-prefix', 'without the task and the file before each line')
    .addHelpText(
      'after',
      examples(
        'agent tail 501 -f',
        'agent tail 501 --file stderr -n 100',
        'agent tail 501 --task 9001 --file stdout --no-prefix -n all',
      ),
    )
    .action(async (job, options) => (await loaded(import('./commands/tail.ts'))).tail(job, options));

  command(program, 'view', 'what is followed, in a browser: prints the link, and opens it where there is a display')
    .option('--no-open', 'print the link only')
    .addHelpText('after', examples('agent view', 'agent view --no-open'))
    .action(async (options) => (await loaded(import('./commands/view.ts'))).view(options));
}

function addPasses(program: Command): void {
  command(program, 'sync', 'one complete pass over a watched job, then exit (by the running agent, if there is one)')
    .argument('<job>', 'id of the job', jobArgument)
    .option('--json', 'for programs (version 1)')
    .addHelpText('after', examples('agent sync 501', '*/10 * * * *  agent sync 501 -c ~/cluster/config.yaml'))
    .action(async (job, options) => (await loaded(import('./commands/sync.ts'))).sync(job, options));

  command(program, 'verify', 'compare every mirror and result of a job with the raw bytes of the server')
    .argument('<job>', 'id of the job', jobArgument)
    .option('--json', 'for programs (version 1)')
    .addHelpText('after', examples('agent verify 501', 'agent verify 501 --json'))
    .action(async (job, options) => (await loaded(import('./commands/verify.ts'))).verify(job, options));
}

function addSetup(program: Command): void {
  command(program, 'check', 'configuration, disk, network, sign-in, a real call: what is wrong, and how to mend it')
    .addOption(new Option('--job <id>', 'a job to try a call on').argParser(jobArgument))
    .addOption(taskOption('a task of that job (repeatable)', 'those that are watched'))
    .option('--probe', 'only ask the server (REST), and print as JSON where it answers as no known server does')
    .addHelpText('after', examples('agent check', 'agent check --job 501 --task 9001', 'agent check --probe'))
    .action(async (options) => (await loaded(import('./commands/check.ts'))).check(options));

  program
    .command('init')
    .description('ask for what the agent needs, write config.yaml, and try it')
    .option('-o, --output <file>', 'the file to write (default: ./config.yaml)')
    .option('--url <url>', 'address of the middleware, or of its file-transfer service')
    .addOption(
      new Option('--protocol <name>', 'what it speaks; found out if left out').choices(['soap', 'rest'] as const),
    )
    .option('--namespace <uri>', 'XML namespace of its operations, for SOAP')
    .option('--base-url <url>', 'address the sign-in starts from')
    .addOption(new Option('--method <name>', 'how to sign in').choices([...AUTH_METHODS, API_KEY] as const))
    .option('--username <name>', 'user name')
    .addOption(new Option('--project-id <id>', 'project, for cloud-platform').argParser(projectArgument))
    .option('--secret-file <file>', 'the file that holds the password, token or session code')
    .option('--secret-stdin', 'read it from the standard input, and keep it in a private file')
    .option('--service', 'for the systemd unit: /etc/agent, /srv/agent, the password as a credential')
    .option('--force', 'replace files that are there')
    .option('--no-check', 'do not try it')
    .addHelpText(
      'after',
      examples(
        'agent init',
        'sudo agent init --service',
        'pass show cluster | agent init --url https://mw.example.org \\',
        '    --method password --username alice --secret-stdin',
      ),
    )
    .action(async (options) => (await loaded(import('./commands/init.ts'))).init(options));

  program
    .command('completion')
    .description('print the completion script for a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText(
      'after',
      examples(
        'agent completion bash | sudo tee /etc/bash_completion.d/agent',
        'agent completion zsh > ~/.zfunc/_agent',
        'agent completion fish > ~/.config/fish/completions/agent.fish',
      ),
    )
    .action((shell) => void process.stdout.write(completionScript(shell, program)));
}

function addHelp(program: Command): void {
  program
    .command('version')
    .description('versions of the program, Node.js, SQLite and the native modules')
    .option('--json', 'for programs (version 1)')
    .addHelpText('after', examples('agent version', 'agent version --json'))
    .action(async (options) => (await loaded(import('./commands/version.ts'))).version(options));

  command(program, 'report', 'write one file to attach to a request for help, without secrets')
    .option('-o, --output <file>', 'the file to write, or - for the standard output (default: jobtail-report-TIME.txt)')
    .option('--log <file>', 'the log of the agent (default: the journal of systemd)')
    .addHelpText('after', examples('agent report', 'sudo agent report', 'agent report --log ~/agent.log'))
    .action(async (options) => (await loaded(import('./commands/report.ts'))).report(options));
}

function addTryOut(program: Command): void {
  program
    .command('sandbox')
    .description('a simulated cluster on this machine, to try the agent on')
    .option('--directory <dir>', 'where its jobs live', './sandbox')
    .option('--port <number>', 'TCP port; any free one if left out', portArgument, 0)
    .option('--job', 'submit the job of the demo at once')
    .option('--no-jobs', 'without the job service, as on servers that have none')
    .addOption(protocolOption('what the configuration speaks that is printed'))
    .option('--release <version>', 'the release of REST that it is', '6.3')
    .addHelpText('after', examples('agent sandbox --port 8090 --job', 'agent sandbox --protocol rest --release 4.2'))
    .action(async (options) => (await loaded(import('../../simulator/commands/sandbox.ts'))).sandbox(options));

  program
    .command('demo')
    .description('sandbox and agent together: see a job followed, the agent killed, and every byte compared')
    .option('--fleet', 'three agents on a PostgreSQL; one is killed, one stopped')
    .option('--seconds <number>', 'how long the job writes (15), or the jobs of a fleet (25)', secondsArgument)
    .option('--all', 'a row for every file in the table, however many there are')
    .addOption(protocolOption('what the agent speaks with the sandbox'))
    .option('--release <version>', 'the release of REST that the sandbox is', '6.3')
    .addHelpText(
      'after',
      examples('agent demo', 'agent demo --seconds 60 --all', 'agent demo --protocol rest', 'agent demo --fleet'),
    )
    .action(async (options) => (await loaded(import('../../simulator/commands/demo.ts'))).demo(options));
}

/** From here on, what runs often is compiled to be quick (main.ts). */
async function loaded<Module>(loading: Promise<Module>): Promise<Module> {
  const module = await loading;
  v8.setFlagsFromString('--opt');
  return module;
}

const examples = (...lines: readonly string[]) =>
  `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.map((line) => `  ${line}`).join('\n')}`;

const protocolOption = (description: string) =>
  new Option('--protocol <name>', description).choices(['soap', 'rest'] as const).default('soap' as const);

const taskOption = (description: string, ifLeftOut: string) =>
  new Option('--task <id>', description).argParser(collect(taskArgument)).default([], ifLeftOut);

/** Of a command that is about one job otherwise. */
const mineOption = (description: string) =>
  new Option('--mine', description).conflicts(['task', 'file', 'results', 'wait', 'foreground', 'now']);

const patternOption = (flags: string, description: string, ifLeftOut: string) =>
  new Option(flags, description).argParser(collect(patternArgument)).default([], ifLeftOut);

function fileOption(): Option {
  const option = new Option('--file <name>', 'a live file (repeatable)').choices(LIVE_FILE_NAMES);
  return option.argParser(collect(fileArgument)).default([], 'all');
}

function command(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .option('-c, --config <file>', 'the configuration (default: $AGENT_CONFIG, ./config.yaml, /etc/agent/config.yaml)');
}
