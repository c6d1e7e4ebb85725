/** The command of an argument list, and its exit code. */
import { EXIT } from '../errors.ts';
import { COMPLETE, complete } from './completion.ts';
import { pageOf, pagesHelp, SHORT_HELP } from './help.ts';
import { reportError } from './process.ts';
import { programOf } from './program.ts';
import { isConfig, withoutConfig } from './words.ts';

/** Sets the exit code; prints an error. */
export async function execute(args: readonly string[]): Promise<void> {
  await run(args).catch((error: unknown) => {
    process.exitCode = reportError(error);
  });
}

/** Commander shows the whole help for `nosuch --help`, and without a command. */
async function run(args: readonly string[]): Promise<void> {
  const program = programOf();
  if (args[0] === COMPLETE) return await complete(program, args.slice(1));
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  const words = args.filter((word, index) => index >= end || word !== '--no-color');
  const others = withoutConfig(words);
  // Of an option without its value, commander prints what is missing.
  if (others.length === 0 && !isConfig(words.at(-1))) {
    process.stderr.write(SHORT_HELP);
    process.exitCode = EXIT.usage;
    return;
  }
  const [first, second] = others.filter((word) => !word.startsWith('-'));
  const name = first === 'help' ? second : first;
  const isPage = first === 'help' && pageOf(second) !== undefined;
  const isKnown = name === undefined || isPage || program.commands.some((command) => command.name() === name);
  if (first === 'help' && !isKnown) program.showHelpAfterError(pagesHelp());
  await program.parseAsync(isKnown ? words : [name], { from: 'user' });
}
