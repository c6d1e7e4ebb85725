#!/usr/bin/env node
/** Turns the arguments into a command, and an error into an exit code. */
import '../system/no-debugger.ts';
import '../system/small-heap.ts';

const { leaveRemovedDirectory } = await import('../system/directories.ts');
const { execute } = await import('./execute.ts');
const { endWhenUnread, reportError } = await import('./process.ts');

// The demo removes its files at its end; every other command may end at any time.
if (process.argv[2] !== 'demo') endWhenUnread(process.argv.slice(2));

leaveRemovedDirectory();
try {
  await execute(process.argv.slice(2));
} catch (error) {
  process.exitCode = reportError(error);
}
