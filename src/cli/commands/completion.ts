/** `agent completion SHELL`: the completion script for a shell, on the standard output. */
import type { CommandText } from '../help/command-tree.ts';
import { completionScript, type Shell } from '../help/completion-scripts.ts';

export function completion(shell: Shell, commands: readonly CommandText[]): void {
  process.stdout.write(completionScript(shell, commands));
}
