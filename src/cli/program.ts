/** The command line: names, arguments and help of the commands; what they do is in commands/. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { type JobId, LIVE_FILE_NAMES, type LiveFileName, parseJobId, parseTaskId, type TaskId } from '../job.ts';
import { demo } from './commands/demo.ts';
import { run } from './commands/run.ts';
import { sandbox } from './commands/sandbox.ts';
import { status } from './commands/status.ts';
import { sync } from './commands/sync.ts';
import { unwatch } from './commands/unwatch.ts';
import { verify } from './commands/verify.ts';
import { watch } from './commands/watch.ts';
import { versionOfProgram } from './version.ts';

const EXIT_CODES = `
Exit codes:
  0  done                                   5  the sign-in failed
  1  a difference was found, or some failed 6  the service failed or cannot be reached
  2  wrong arguments                        7  no such job, or it is not watched
  3  wrong configuration                    8  this machine: rights, disk, state
  4  another agent uses the state directory 130 interrupted`;

export function programOf(): Command {
  const program = new Command('agent')
    .description('Keeps byte-exact local mirrors of the live files of cluster jobs, and syncs their results.')
    .version(versionOfProgram())
    .addHelpText('after', EXIT_CODES)
    .showHelpAfterError('(agent --help, or agent COMMAND --help, says more)')
    .exitOverride();

  command(program, 'run', 'follow the watched jobs until stopped (the daemon, in the foreground)')
    .addHelpText('after', '\nExample:\n  agent run -c /etc/agent/config.yaml')
    .action((options) => run(options));

  command(program, 'watch', 'follow a job, and print the paths of its mirrors')
    .argument('<job>', 'id of the job', jobArgument)
    .option('--task <id>', 'a task of the job whose live files are followed (repeatable)', collect(taskArgument), [])
    .addOption(
      new Option('--file <name>', `a live file: ${LIVE_FILE_NAMES.join(', ')} (repeatable; default: all)`)
        .argParser(collect(fileArgument))
        .default([], 'all'),
    )
    .option('--no-results', 'leave the result files of the job alone')
    .option('--foreground', 'follow it right here, while no agent runs')
    .addHelpText(
      'after',
      '\nExamples:\n  agent watch 501 --task 9001 --task 9002\n  tail -F $(agent watch 501 --task 9001 --file stdout)',
    )
    .action((job, options) => watch(job, options));

  command(program, 'unwatch', 'one last complete pass over a job, then follow it no longer; its files stay')
    .argument('<job>', 'id of the job', jobArgument)
    .option('--now', 'without the last pass')
    .action((job, options) => unwatch(job, options));

  command(program, 'status', 'what is followed and how it stands')
    .argument('[job]', 'id of a job', jobArgument)
    .option('--json', 'for programs (version 1)')
    .action((job, options) => status(job, options));

  command(program, 'sync', 'one complete pass over a watched job, then exit (by the running agent, if there is one)')
    .argument('<job>', 'id of the job', jobArgument)
    .option('--json', 'for programs (version 1)')
    .action((job, options) => sync(job, options));

  command(program, 'verify', 'compare every mirror and result of a job with the raw bytes of the server')
    .argument('<job>', 'id of the job', jobArgument)
    .option('--json', 'for programs (version 1)')
    .action((job, options) => verify(job, options));

  program
    .command('sandbox')
    .description('a simulated cluster on this machine, to try the agent on')
    .exitOverride()
    .option('--directory <dir>', 'where its jobs live', './sandbox')
    .option('--port <number>', 'TCP port; any free one if left out', portArgument, 0)
    .option('--job', 'submit the job of the demo at once')
    .addHelpText('after', '\nExample:\n  agent sandbox --port 8090 --job')
    .action((options) => sandbox(options));

  program
    .command('demo')
    .description('sandbox and agent together: see a job followed, the agent killed, and every byte compared')
    .exitOverride()
    .option('--seconds <number>', 'how long the job writes', secondsArgument, 15)
    .option('--all', 'a row for every file in the table, however many there are')
    .action((options) => demo(options));
  return program;
}

function command(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .exitOverride()
    .option('-c, --config <file>', 'the configuration (default: $AGENT_CONFIG, ./config.yaml, /etc/agent/config.yaml)');
}

function jobArgument(text: string): JobId {
  const jobId = parseJobId(text);
  if (jobId === undefined)
    throw new InvalidArgumentError(`"${text}" is no job id: a whole number of 64 bits was expected.`);
  return jobId;
}

function taskArgument(text: string): TaskId {
  const taskId = parseTaskId(text);
  if (taskId === undefined)
    throw new InvalidArgumentError(`"${text}" is no task id: a whole number of 64 bits was expected.`);
  return taskId;
}

function fileArgument(text: string): LiveFileName {
  const file = LIVE_FILE_NAMES.find((name) => name === text);
  if (file === undefined)
    throw new InvalidArgumentError(`"${text}" is no live file: one of ${LIVE_FILE_NAMES.join(', ')} was expected.`);
  return file;
}

function portArgument(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new InvalidArgumentError(`"${text}" is no port.`);
  return port;
}

function secondsArgument(text: string): number {
  const seconds = Number(text);
  if (!(seconds >= 1 && seconds <= 600)) throw new InvalidArgumentError(`"${text}" is no number from 1 to 600.`);
  return seconds;
}

function collect<T>(parse: (text: string) => T): (text: string, before: T[]) => T[] {
  return (text, before) => [...before, parse(text)];
}
