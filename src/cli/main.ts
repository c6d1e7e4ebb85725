#!/usr/bin/env node
/** The start of each command: what must be before all else, and the version. */
import '../system/no-debugger.ts';
import { asJobtailError, EXIT } from '../errors.ts';
import { printableLines } from '../printable.ts';
import { versionOfProgram } from '../system/package-file.ts';
import { leaveRemovedDirectory } from '../system/working-directory.ts';
import { commandIn } from './words.ts';

const args = process.argv.slice(2);
const command = commandIn(args);
// The demo removes its files at its end; every other command may end at any time.
if (command !== 'demo') endWhenUnread();
leaveRemovedDirectory();

// Without the code of the commands, which is more than half of a start.
if (args.length === 1 && /^(-V|--version)$/.test(args[0] ?? '')) process.stdout.write(`${versionOfProgram()}\n`);
else await (await import('./execute.ts')).execute(args);

/** Ends the command when its output cannot be written. A reader that is gone is a success only with a result. */
function endWhenUnread(): void {
  // A message that cannot be written changes no exit code.
  process.stderr.on('error', () => {});
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(process.exitCode ?? EXIT.unread);
    const { message, policy } = asJobtailError(error);
    process.stderr.write(`agent: the output cannot be written: ${printableLines(message)}\n`);
    process.exit(/^(?:grep|errors)$/.test(command ?? '') ? EXIT.usage : policy.exitCode);
  });
}
