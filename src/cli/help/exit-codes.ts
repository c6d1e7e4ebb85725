/** What the exit codes mean, for the help and the man page; the README has the same. */
import { EXIT } from '../../errors.ts';

export const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.ok, 'done'],
  [EXIT.failed, 'a difference was found, or some failed'],
  [EXIT.usage, 'wrong arguments'],
  [EXIT.config, 'wrong configuration'],
  [EXIT.locked, 'another agent uses the state directory'],
  [EXIT.signIn, 'the sign-in failed'],
  [EXIT.service, 'the service failed or cannot be reached'],
  [EXIT.notFound, 'no such job, or it is not watched'],
  [EXIT.local, 'this machine: rights, disk, state'],
  [EXIT.internal, 'a defect of the program'],
  [EXIT.interrupted, 'interrupted'],
];

/** As they stand below the help. */
export function exitCodesHelp(): string {
  const lines = EXIT_CODES.map(([code, meaning]) => `  ${String(code).padEnd(4)} ${meaning}`);
  return `\nExit codes:\n${lines.join('\n')}`;
}
