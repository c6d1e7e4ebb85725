/** A command of the program, and the options that several commands have. */
import { Command, Option } from 'commander';
import { LIVE_FILE_NAMES } from '../job.ts';
import { collect, fileArgument, jobArgument, taskArgument } from './arguments.ts';

export const CONFIG_HELP =
  'the configuration (default: $AGENT_CONFIG, ~/.config/jobtail/config.yaml, /etc/agent/config.yaml)';

type Parse = (text: string) => unknown;

export class AgentCommand extends Command {
  override createCommand(name?: string): AgentCommand {
    return new AgentCommand(name);
  }

  /** Adds a command that takes a configuration. */
  with(name: string, description: string): AgentCommand {
    const command = this.without(name, description).option('-c, --config <file>', CONFIG_HELP);
    return command
      .option('-q, --quiet', 'print only errors')
      .option('-v, --verbose', 'also print each request and its result, on standard error (also --debug)')
      .addOption(new Option('--debug').implies({ verbose: true }).conflicts('quiet').hideHelp());
  }

  /** Adds a command that takes none. */
  without(name: string, description: string): AgentCommand {
    return this.command(name).description(description).showHelpAfterError(`(see agent ${name} --help)`);
  }

  jobs(form: '<job...>' | '[job...]' = '<job...>', description = 'ids of jobs'): this {
    return this.argument(form, description, collect(jobArgument));
  }

  task(description: string, ifLeftOut: string): this {
    return this.list('--task <id>', description, taskArgument, ifLeftOut);
  }

  file(): this {
    const option = new Option('--file <name>', 'a live file (repeatable)').choices(LIVE_FILE_NAMES);
    return this.addOption(option.argParser(collect(fileArgument)).default([], 'all'));
  }

  /** Adds an option that can be repeated. */
  list(flags: string, description: string, parse: Parse, ifLeftOut: string, implied = {}): this {
    const option = new Option(flags, description).argParser(collect(parse)).default([], ifLeftOut);
    return this.addOption(option.implies(implied));
  }

  choice(flags: string, description: string, choices: readonly string[], ifLeftOut?: string): this {
    return this.addOption(new Option(flags, description).choices(choices).default(ifLeftOut));
  }

  mine(description: string): this {
    const others = ['task', 'file', 'results', 'quiet', 'json', 'wait', 'foreground', 'stallAfter', 'now'];
    return this.addOption(new Option('--mine', description).conflicts(others));
  }

  ofMine(flags: string, description: string, parse: Parse): this {
    return this.addOption(new Option(flags, description).argParser(parse).implies({ mine: true }));
  }

  json(more = ''): this {
    return this.option('--json', `print JSON (format version 2)${more}`);
  }

  examples(...lines: readonly string[]): this {
    const title = lines.length === 1 ? 'Example' : 'Examples';
    return this.addHelpText('after', `\n${title}:\n${lines.map((line) => `  ${line}`).join('\n')}`);
  }
}
