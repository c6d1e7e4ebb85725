#!/usr/bin/env node
/** The start of each command: what must be before all else, and the version. */
import '../system/no-debugger.ts';
import { versionOfProgram } from '../system/package-file.ts';
import { leaveRemovedDirectory } from '../system/working-directory.ts';
import { endWhenUnread } from './unread-output.ts';
import { commandIn } from './words.ts';

const args = process.argv.slice(2);
const command = commandIn(args);
// The demo removes its files at its end; every other command may end at any time.
if (command !== 'demo') endWhenUnread(command);
leaveRemovedDirectory();

// Without the code of the commands, which is more than half of a start.
if (args.length === 1 && /^(-V|--version)$/.test(args[0] ?? '')) process.stdout.write(`${versionOfProgram()}\n`);
else await (await import('./execute.ts')).execute(args);
