/** A failure as the person at the terminal sees it, and its exit code. */
import { CommanderError } from 'commander';
import { asJobtailError, EXIT } from '../errors.ts';
import { printableLines } from '../printable.ts';

/** Prints what happened and what to do; the exit code of the process. */
export function reportError(thrown: unknown): number {
  // Commander has already said what is wrong with the arguments.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? EXIT.ok : EXIT.usage;
  const error = asJobtailError(thrown);
  if (error.code === 'aborted') return EXIT.interrupted;
  process.stderr.write(`agent: ${printableLines(error.message)}\n`);
  if (error.hint !== undefined) process.stderr.write(`       ${printableLines(error.hint)}\n`);
  if (error.code === 'internal') {
    const { stack = '' } = error.cause instanceof Error ? error.cause : error;
    process.stderr.write(`${printableLines(stack)}\n`);
  }
  return error.policy.exitCode;
}
