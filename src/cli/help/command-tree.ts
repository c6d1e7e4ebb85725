/** The commands as plain data: completion and the man page are made of it, so that they cannot say anything else. */
import type { Argument, Command, Option } from 'commander';

export interface OptionText {
  readonly short: string | undefined;
  readonly long: string;
  /** The name of its value; undefined if it takes none. */
  readonly value: string | undefined;
  readonly description: string;
  readonly choices: readonly string[];
}

export interface CommandText {
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly {
    readonly name: string;
    readonly required: boolean;
    readonly choices: readonly string[];
  }[];
  readonly options: readonly OptionText[];
}

export function commandsOf(program: Command): CommandText[] {
  return program.commands.map((command) => ({
    name: command.name(),
    description: command.description(),
    arguments: command.registeredArguments.map((argument: Argument) => ({
      name: argument.name(),
      required: argument.required,
      choices: argument.argChoices ?? [],
    })),
    options: [...command.options, HELP].map(optionText),
  }));
}

type OptionLike = Pick<Option, 'short' | 'long' | 'flags' | 'description' | 'argChoices'>;

/** Every command has it; commander keeps it apart. */
const HELP: OptionLike = { short: '-h', long: '--help', flags: '-h, --help', description: 'display help for command' };

function optionText(option: OptionLike): OptionText {
  return {
    short: option.short,
    long: option.long ?? '',
    value: /[<[]([^\]>]+)[\]>]/.exec(option.flags)?.[1],
    description: option.description,
    choices: option.argChoices ?? [],
  };
}
