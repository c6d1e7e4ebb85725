/** The log of a command that ends: what has to be said, in the words of a person, wherever its standard error goes. */
import type { Log } from '../agent/ports.ts';
import { printableLines } from '../printable.ts';

/** Warnings and errors with their hints. Not by pino, which takes longer to load than many a command to end. */
export function commandLog(): Log {
  // A reader that has gone must not end the command.
  process.stderr.on('error', () => {});
  const quiet = () => {};
  const say: Log['warn'] = ({ hint }, message) => {
    const advice = hint === undefined ? '' : ` (${hint})`;
    process.stderr.write(`agent: ${printableLines(`${message}${advice}`)}\n`);
  };
  return { debug: quiet, info: quiet, warn: say, error: say };
}
