/** The command of an argument list. */
import { EXIT } from '../errors.ts';
import { COMPLETE, complete } from './completion.ts';
import { SHORT_HELP } from './help.ts';
import { programOf } from './program.ts';

/** Runs the command of an argument list. Commander shows the whole help for `help nosuch` and `nosuch --help`. */
export async function execute(args: readonly string[]): Promise<void> {
  if (args.length === 0) {
    process.stderr.write(SHORT_HELP);
    process.exitCode = EXIT.usage;
    return;
  }
  const program = programOf();
  if (args[0] === COMPLETE) return await complete(program, args.slice(1));
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  const words = args.filter((word, index) => index >= end || word !== '--no-color');
  const names = words.filter((word, index) => !word.startsWith('-') && !/^(-c|--config)$/.test(words[index - 1] ?? ''));
  const name = names[0] === 'help' ? names[1] : names[0];
  const isKnown = name === undefined || program.commands.some((command) => command.name() === name) || name === 'help';
  await program.parseAsync(isKnown ? words : [name], { from: 'user' });
}
