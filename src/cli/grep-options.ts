/** The options of `agent grep`, which are those of grep: its short ones mean something else in other commands. */
import { type Command, Option } from 'commander';
import { collect, contextArgument, fileOption, sinceArgument, taskOption } from './arguments.ts';
import { examples } from './help.ts';

export function addGrep(program: Command): void {
  // Without -c for the configuration: it counts, as in grep.
  program
    .command('grep')
    .description('print the lines of the mirrors that match a regular expression (exit code 1: no line matches)')
    .usage('[options] PATTERN [JOB...]')
    .argument('[args...]', 'a regular expression of JavaScript, and ids of jobs (default: all)')
    .addOption(
      new Option('-e, --regexp <pattern>', 'lines that match it; repeatable')
        .argParser(collect(String))
        .default([], 'the first argument'),
    )
    .option('-F, --fixed-strings', 'the pattern is a text, not an expression')
    .option('-w, --word-regexp', 'only matches that are whole words')
    .option('-m, --max-count <lines>', 'at most so many selected lines of each file', contextArgument)
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
    .addOption(taskOption('only this task (repeatable)', 'all'))
    .addOption(fileOption())
    .option('--since <time>', 'only mirrors that grew since this time: 90s, 30m, 2h, 1d or a date', sinceArgument)
    .option('--all-generations', 'also search older generations (stdout.log.1, .2, ...)')
    .option('--json', 'print JSON, one object on each line (format version 2)')
    .option(
      '--config <file>',
      'the configuration (default: $AGENT_CONFIG, ./config.yaml, ~/.config/jobtail/config.yaml, /etc/agent/config.yaml)',
    )
    .addHelpText(
      'after',
      examples(
        "agent grep 'CUDA out of memory'",
        'agent grep -n -C 3 -i traceback 501 502 --file stderr',
        'agent grep -l --since 2h "killed|oom" | xargs less',
      ),
    )
    .action(async (args, options) => (await import('./commands/grep.ts')).grep(args, options));
}
