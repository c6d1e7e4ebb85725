/** A command whose output cannot be written, or is not read. */
import { asJobtailError, EXIT } from '../errors.ts';
import { printableLines } from '../printable.ts';

/** Ends the command when its output cannot be written. A reader that is gone is a success only with a result. */
export function endWhenUnread(command = ''): void {
  // A message that cannot be written changes no exit code.
  process.stderr.on('error', () => {});
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(process.exitCode ?? EXIT.unread);
    const { message, policy } = asJobtailError(error);
    process.stderr.write(`agent: the output cannot be written: ${printableLines(message)}\n`);
    process.exit(['grep', 'errors'].includes(command) ? EXIT.usage : policy.exitCode);
  });
}
