#!/usr/bin/env node
/** Turns the arguments into a command, and an error into an exit code. */
import v8 from 'node:v8';

// Before anything is loaded: whole files pass through in pieces, and a small heap is all they need.
v8.setFlagsFromString('--optimize-for-size');
// Nothing is compiled to be quick until a command is loaded (program.ts): the loading itself is over sooner without.
v8.setFlagsFromString('--no-opt');

const { programOf } = await import('./program.ts');
const { endWhenUnread, reportError } = await import('./process.ts');

// The demo removes its files at its end; every other command, and help, may end at any time.
if (process.argv[2] !== 'demo') endWhenUnread();

try {
  await programOf().parseAsync(process.argv);
} catch (error) {
  process.exitCode = reportError(error);
}
