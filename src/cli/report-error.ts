/** A failure as the person at the terminal sees it, and its exit code. */
import { CommanderError } from 'commander';
import { asJobtailError, EXIT } from '../errors.ts';

/** Prints what happened and what to do; the exit code of the process. */
export function reportError(thrown: unknown): number {
  // Commander has already said what is wrong with the arguments.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? EXIT.ok : EXIT.usage;
  const error = asJobtailError(thrown);
  if (error.code === 'aborted') return EXIT.interrupted;
  process.stderr.write(`agent: ${error.message}\n`);
  if (error.hint !== undefined) process.stderr.write(`       ${error.hint}\n`);
  if (error.code === 'internal') {
    const { stack = '' } = error.cause instanceof Error ? error.cause : error;
    process.stderr.write(`${stack}\n`);
  }
  return error.policy.exitCode;
}
