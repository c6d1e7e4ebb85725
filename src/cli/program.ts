/** The command line: names, arguments and help of the commands. Their code in commands/ is loaded on demand. */
import { Argument, Option } from 'commander';
import { API_KEY, AUTH_METHODS } from '../auth.ts';
import { printableLines } from '../printable.ts';
import { versionOfProgram } from '../system/package-file.ts';
import { AgentCommand, CONFIG_HELP } from './agent-command.ts';
import {
  contextArgument,
  countArgument,
  durationArgument,
  instanceArgument,
  jobArgument,
  jobsArgument,
  jobsUnlessMine,
  linesArgument,
  patternArgument,
  portArgument,
  projectArgument,
  secondsArgument,
  sinceArgument,
} from './arguments.ts';
import { completionScript, SHELLS } from './completion.ts';
import { documents, exitCodesHelp, FIRST_EXAMPLES, pageOf, pagesHelp, plainError } from './help.ts';
import { beQuiet, beVerbose, forEach } from './process.ts';
import { columnsOf, wrapToColumns } from './show/terminal.ts';

const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug', 'trace'];
const PROTOCOLS = ['soap', 'rest'];
const MINE = { mine: true };

export function programOf(): AgentCommand {
  const program = new AgentCommand('agent')
    .description(
      'Follows cluster jobs through HEAppE Middleware: mirrors their output files while they grow, and fetches results.',
    )
    .version(versionOfProgram())
    .option('-c, --config <file>', 'the configuration; also after the command')
    .option('--no-color', 'no colours (also NO_COLOR=1; FORCE_COLOR=1 for colours in pipes)')
    .addHelpText('before', FIRST_EXAMPLES)
    .addHelpText('after', () => `${exitCodesHelp()}\n\n${pagesHelp()}\n(${documents()})`)
    .helpCommand(false)
    .enablePositionalOptions()
    .showHelpAfterError('(see agent --help, or agent COMMAND --help)')
    .configureOutput({ outputError: (text, write) => write(printableLines(plainError(text))) })
    .exitOverride();
  const groups = [
    ['Follow:', addFollowing],
    ['Inspect:', addReading],
    ['Verify:', addPasses],
    ['Set up:', addSetup],
    ['Get help:', addHelp],
    ['Demonstrate:', addTryOut],
  ] as const;
  for (const [heading, add] of groups) add(program.commandsGroup(heading));
  program.hook('preAction', (_, command) => {
    const { config } = program.opts();
    if (config !== undefined && command.getOptionValue('config') === undefined)
      command.setOptionValue('config', config);
    if (command.opts()['verbose'] === true) beVerbose(command);
    if (command.opts()['quiet'] === true) beQuiet(command);
  });
  return program;
}

function addFollowing(program: AgentCommand): void {
  program
    .with('run', 'run the agent: follow jobs until it is stopped (the daemon, in the foreground)')
    .choice('--log-level <level>', 'in place of logging.level', LOG_LEVELS)
    .option('--drain', 'in a fleet: let the running agent hand off its jobs to the other agents, and exit')
    .examples('agent run', 'agent run -c /etc/agent/config.yaml')
    .action(async (options) => (await import('./commands/run.ts')).run(options));

  program
    .with('watch', 'add a job, or all jobs of the user, to the jobs that the agent follows; print the mirror paths')
    .jobs('[job...]')
    .task('follow the live files of this task only (repeatable)', 'all tasks of the job')
    .file()
    .option('--no-results', 'do not fetch the result files of the job')
    .json()
    .option('--no-wait', 'return at once, without waiting (up to 10 s) for the first tasks')
    .addOption(
      new Option(
        '--foreground',
        'follow the job in this process, if no agent is running, and print its lines',
      ).conflicts(['quiet', 'json', 'wait']),
    )
    .option(
      '-n, --lines <number>',
      'with --foreground: begin with so many last lines, or "all" (default: 10)',
      linesArgument,
    )
    .option(
      '--stall-after <time>',
      'report the job as stalled if no live file grows for this time (30m, 2h, ...)',
      durationArgument,
    )
    .mine('every job of the user, from its submission until it is settled')
    .list('--include <pattern>', 'with --mine: only matching names of jobs (repeatable)', patternArgument, 'all', MINE)
    .list('--exclude <pattern>', 'with --mine: no matching names of jobs (repeatable)', patternArgument, 'none', MINE)
    .ofMine('--max-age <time>', 'with --mine: ignore jobs that ended longer ago (default: 1d)', durationArgument)
    .ofMine(
      '--max-jobs <number>',
      'with --mine: maximum jobs at a time (default: watchMine.maxJobs, 200)',
      jobsArgument,
    )
    .examples(
      'agent watch 501',
      'agent watch 501 --task 9001 --task 9002',
      'agent watch 501 --foreground',
      'agent watch 501 --foreground -n all',
      'tail -F $(agent watch 501 --file stdout)',
      "agent watch --mine --include 'heat-*' --exclude '*-test'",
    )
    .action(async (jobs, options) => {
      const jobIds = jobsUnlessMine(jobs, options);
      if (jobIds !== undefined) await (await import('./commands/watch.ts')).watchEach(jobIds, options);
      else await (await import('./commands/watch-mine.ts')).watchMine(options);
    });

  program
    .with('unwatch', 'compare and fetch all files of a job one last time, then stop following it; the files stay')
    .jobs('[job...]')
    .option('--now', 'stop at once, without the last comparison')
    .mine('take no new jobs of the user; follow the current ones until they are settled')
    .examples('agent unwatch 501', 'agent unwatch 501 --now', 'agent unwatch --mine')
    .action(async (jobs, options) => {
      const jobIds = jobsUnlessMine(jobs, options);
      if (jobIds !== undefined)
        await forEach(jobIds, async (jobId) => (await import('./commands/sync.ts')).unwatch(jobId, options));
      else await (await import('./commands/watch-mine.ts')).unwatchMine(options);
    });

  program
    .with('forget', 'remove jobs that are not followed any more from the state, and on request their files')
    .jobs('[job...]', 'ids of jobs; with --older-than, all jobs by default')
    .option('--older-than <time>', 'only jobs that the agent last worked on before this time: 30d', durationArgument)
    .option('--delete-files', 'delete the mirrors and results of the jobs, too')
    .option('--unproven', 'also jobs whose files are not all proven to be here')
    .option('--dry-run', 'only print which jobs would be removed')
    .option('--yes', 'do not ask')
    .examples('agent forget --older-than 30d --dry-run', 'agent forget --older-than 30d --delete-files --yes')
    .action(async (jobs = [], options) => (await import('./commands/forget.ts')).forget(jobs, options));
}

function addReading(program: AgentCommand): void {
  program
    .with('jobs', 'list the jobs of the user as the middleware reports them, and mark the followed ones')
    .json()
    .examples('agent jobs', "agent jobs --json | jq -r '.jobs[] | [.jobId, .jobState] | @tsv'")
    .action(async (options) => (await import('./commands/jobs.ts')).jobs(options));

  program
    .with('status', 'show the followed jobs and their state')
    .jobs('[job...]')
    .option('--all', 'also jobs that were unwatched')
    .option('-w, --watch', 'update the output every second, until Ctrl-C')
    .json()
    .examples('agent status', 'agent status 501', 'agent status --watch', 'agent status --json')
    .action(async (jobs, options) => (await import('./commands/status.ts')).status(jobs, options));

  program
    .with('results', 'list the results of a job with path, size, checksum, and whether each is complete')
    .argument('<job>', 'id of the job', jobArgument)
    .json()
    .examples('agent results 501', "agent results 501 --json | jq -r '.results[] | select(.complete).path'")
    .action(async (job, options) => (await import('./commands/results.ts')).results(job, options));

  program
    .with('tail', 'print the lines of the live files of a job, with or without a running agent')
    .jobs('<job...>', 'ids of jobs; with -f, one')
    .option('-f, --follow', 'print new lines until the job is settled or unwatched, or until Ctrl-C')
    .option('-n, --lines <number>', 'number of last lines of each file, or "all"', linesArgument, 10)
    .task('only this task (repeatable)', 'all')
    .file()
    .option(
      '--since <time>',
      'only files that grew since this time: 90s, 10m, 2h, 1d, or 2026-03-01T12:00 (tail shows no times)',
      sinceArgument,
    )
    .option('--raw', 'print control characters unchanged; use it only for files that you trust')
    .option('--no-prefix', 'do not print the task and the file before each line')
    .examples(
      'agent tail 501 -f',
      'agent tail 501 --file stderr -n 100',
      'agent tail 501 --task 9001 --file stdout --no-prefix -n all',
    )
    .action(async (jobs, options) => (await import('./commands/tail.ts')).tail(jobs, options));

  // The options are those of grep: -c counts, and -h prints no names.
  program
    .without('grep', 'print the lines of the mirrors that match a regular expression (exit code 1: no line matches)')
    .usage('[options] PATTERN [JOB...]')
    .argument('[args...]', 'a regular expression of JavaScript, and ids of jobs (default: all)')
    .list('-e, --regexp <pattern>', 'lines that match it; repeatable', String, 'the first argument')
    .option('-F, --fixed-strings', 'the pattern is a text, not an expression')
    .option('-w, --word-regexp', 'only matches that are whole words')
    .option('-m, --max-count <lines>', 'at most so many selected lines of each file', countArgument)
    .option('-h, --no-filename', 'print no task and file before each line')
    .option('-H, --filename', 'print task and file before each line (the default)')
    .helpOption('--help', 'display help for command')
    .option('-i, --ignore-case', 'ignore the case of letters')
    .option('-v, --invert-match', 'select the lines that do not match')
    .option('-c, --count', 'print only the number of selected lines of each file')
    .option('-l, --files-with-matches', 'print only the paths of the mirrors with selected lines')
    .option('-n, --line-number', 'print the numbers of the lines')
    .option('-q, --quiet', 'print nothing, and end at the first selected line')
    .option('-A, --after-context <lines>', 'lines to print after each selected line', contextArgument)
    .option('-B, --before-context <lines>', 'lines to print before each selected line', contextArgument)
    .option('-C, --context <lines>', 'lines to print before and after each selected line', contextArgument)
    .task('only this task (repeatable)', 'all')
    .file()
    .option('--since <time>', 'only mirrors that grew since this time: 90s, 30m, 2h, 1d or a date', sinceArgument)
    .option('--all-generations', 'also search older generations (stdout.log.1, .2, ...)')
    .option('--json', 'print JSON, one object on each line (format version 2)')
    .option('--config <file>', CONFIG_HELP)
    .examples(
      "agent grep 'CUDA out of memory'",
      'agent grep -n -C 3 -i traceback 501 502 --file stderr',
      'agent grep -l --since 2h "killed|oom" | xargs less',
    )
    .action(async (args, options) => (await import('./commands/grep.ts')).grep(args, options));

  program
    .with('errors', 'show the lines that look like errors, grouped by likeness (exit code 1: none)')
    .jobs('[job...]', 'ids of jobs (default: all)')
    .json(': the first and the last error of each task, and the groups')
    .examples('agent errors', 'agent errors 501', "agent errors --json | jq '.groups[0]'")
    .action(async (jobs, options) => (await import('./commands/grep.ts')).errors(jobs, options));

  program
    .with('view', 'show the followed jobs in a browser: print the link, and open it if there is a display')
    .option('--no-open', 'print the link only')
    .examples('agent view', 'agent view --no-open')
    .action(async (options) => (await import('./commands/view.ts')).view(options));
}

function addPasses(program: AgentCommand): void {
  program
    .with(
      'wait',
      'wait until each job is settled: over, and its files compared; the exit code shows how the jobs ended',
    )
    .jobs('<job...>', 'ids of jobs; those that are not watched yet are watched')
    .option('--any', 'return when one of the jobs is over')
    .option('--tail', 'print the lines of the live files meanwhile')
    .option('--timeout <time>', 'exit with 12 after this time: 90s, 2h30m, ...', durationArgument)
    .json()
    .examples('agent wait 501 && make report', 'agent wait 501 502 --any --timeout 2h30m')
    .action(async (jobs, options) => (await import('./commands/wait.ts')).wait(jobs, options));

  program
    .with('sync', 'compare and fetch all files of a followed job once, then exit (a running agent does the work)')
    .jobs()
    .json()
    .examples('agent sync 501', '*/10 * * * *  agent sync 501 -c ~/cluster/config.yaml')
    .action((jobs, options) => forEach(jobs, async (job) => (await import('./commands/sync.ts')).sync(job, options)));

  program
    .with('verify', 'compare every mirror and result of a job with the raw bytes of the server')
    .jobs()
    .option(
      '--complete',
      'also compare with the list of the cluster itself, over SSH or a share: it finds files that the service never lists',
    )
    .json()
    .examples('agent verify 501', 'agent verify 501 --complete', 'agent verify 501 --json')
    .action((jobs, options) =>
      forEach(jobs, async (job) => (await import('./commands/verify.ts')).verify(job, options)),
    );
}

function addSetup(program: AgentCommand): void {
  program
    .with('notify', 'list undelivered notifications, or send a test event to the target of each notification rule')
    .option('--list', 'list the notifications that wait for delivery, and those that were given up')
    .option('--test', 'send an event of the type test to the target of each rule')
    .json()
    .examples('agent notify --test', 'agent notify --list')
    .action(async (options) => (await import('./commands/notify.ts')).notify(options));

  program
    .with('check', 'test configuration, disk, network, sign-in and a real call, with a hint for each error')
    .option('--job <id>', 'the job of the test call', jobArgument)
    .task('a task of that job (repeatable)', 'the watched tasks')
    .json()
    .option('--probe', 'only send test requests (REST), and print responses that differ from all known servers as JSON')
    .examples('agent check', 'agent check --job 501 --task 9001', 'agent check --probe')
    .action(async (options) => (await import('./commands/check.ts')).check(options));

  program
    .without('init', 'ask for the required settings, write the configuration, and test it')
    .option('-o, --output <file>', 'the file to write (default: ~/.config/jobtail/config.yaml)')
    .option('--url <url>', 'address of the middleware, or of its file-transfer service')
    .choice('--protocol <name>', 'protocol of the middleware (default: detected)', PROTOCOLS)
    .option('--namespace <uri>', 'XML namespace of the operations, for SOAP')
    .option('--base-url <url>', 'base address of the sign-in')
    .choice('--method <name>', 'sign-in method', [...AUTH_METHODS, API_KEY])
    .option('--username <name>', 'user name')
    .option('--project-id <id>', 'id of the project, for cloud-platform', projectArgument)
    .option('--secret-file <file>', 'the file with the password, token or session code')
    .option('--secret-stdin', 'read the secret from the standard input, and store it in a private file')
    .option(
      '--service [instance]',
      'for the systemd unit agent, or an instance of agent@: /etc/agent, /srv/agent',
      instanceArgument,
    )
    .option('--force', 'replace existing files; each is kept as .bak')
    .option('--no-check', 'do not test the configuration')
    .examples(
      'agent init',
      'sudo agent init --service',
      'sudo agent init --service alice',
      'pass show cluster | agent init --url https://mw.example.org \\',
      '    --method password --username alice --secret-stdin',
    )
    .action(async (options) => (await import('./commands/init.ts')).init(options));

  program
    .without('completion', 'print the completion script for a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .examples(
      'agent completion bash | sudo tee /etc/bash_completion.d/agent',
      'agent completion zsh > ~/.zfunc/_agent',
      'agent completion fish > ~/.config/fish/completions/agent.fish',
    )
    .action((shell) => void process.stdout.write(completionScript(shell)));
}

function addHelp(program: AgentCommand): void {
  program
    .without('help', 'print the help of a command, or a page of the documents')
    .argument('[name]', 'the command or the page; agent help lists both')
    .examples('agent help wait', 'agent help troubleshooting | less', 'agent help results.md')
    .action((name?: string) => {
      const found = program.commands.find((one) => one.name() === name);
      const page = pageOf(name);
      if (found === undefined && page !== undefined)
        return void process.stdout.write(page.replaceAll(/.+/g, (line) => wrapToColumns(line, columnsOf()).join('\n')));
      (found ?? program).outputHelp();
      if (page !== undefined) process.stdout.write(`\nThe page of the documents: agent help ${name}.md\n`);
    });

  program
    .without('version', 'print the versions of the program, Node.js, SQLite and the native modules')
    .json()
    .examples('agent version', 'agent version --json')
    .action(async (options) => (await import('./commands/version.ts')).version(options));

  program
    .with('report', 'write one file to attach to a support request: versions, configuration and log, without secrets')
    .option('-o, --output <file>', 'the file to write, or - for the standard output (default: jobtail-report-TIME.txt)')
    .option('--log <file>', 'the log of the agent (default: the journal of systemd)')
    .examples('agent report', 'sudo agent report', 'agent report --log ~/agent.log')
    .action(async (options) => (await import('./commands/report.ts')).report(options));
}

function addTryOut(program: AgentCommand): void {
  program
    .without('sandbox', 'run a simulated cluster on this machine, to try the agent')
    .option('--directory <dir>', 'directory of its jobs', './sandbox')
    .option('--port <number>', 'TCP port; any free port if omitted', portArgument, 0)
    .option('--job', 'submit the job of the demo at the start')
    .option('--seconds <number>', 'how long that job writes', secondsArgument, 600)
    .option('--no-jobs', 'simulate a server of SOAP without the service that reports jobs')
    .choice('--protocol <name>', 'protocol of the printed configuration', PROTOCOLS, 'rest')
    .option('--release <version>', 'the HEAppE release to simulate, with --protocol rest', '6.3')
    .examples('agent sandbox --port 8090 --job', 'agent sandbox --release 4.2')
    .action(async (options) => (await import('../../simulator/commands/sandbox.ts')).sandbox(options));

  program
    .without('demo', 'run sandbox and agent together: follow a job, kill the agent, and compare every byte')
    .option('--fleet', 'three agents with one PostgreSQL; kill one agent, and stop another one')
    .option('--seconds <number>', 'how long the jobs write (default: 15; with --fleet: 25)', secondsArgument)
    .option('--all', 'print a row for every file')
    .choice('--protocol <name>', 'protocol between agent and sandbox', PROTOCOLS, 'rest')
    .option('--release <version>', 'the HEAppE release to simulate, with --protocol rest', '6.3')
    .examples('agent demo', 'agent demo --seconds 60 --all', 'agent demo --fleet')
    .action(async (options) => (await import('../../simulator/commands/demo.ts')).demo(options));
}
