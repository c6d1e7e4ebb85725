#!/usr/bin/env node
/** Turns the arguments into a command, and an error into an exit code. */
import { programOf } from './program.ts';
import { reportError } from './report-error.ts';

try {
  await programOf().parseAsync(process.argv);
} catch (error) {
  process.exitCode = reportError(error);
}
