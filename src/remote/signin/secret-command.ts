/** A secret that a program prints: `oidc-token NAME`, `pass show NAME`. */
import { asJobtailError, type ErrorCode, JobtailError } from '../../errors.ts';
import { safeText } from '../../redact.ts';
import { MOST_SAID, printedBy } from '../../system/program.ts';

/** Shorter arguments are words such as `-p`; hiding them would only make the program's message unreadable. */
const MIN_HIDDEN_ARGUMENT = 4;
/** So little of a secret is not known again where the text was cut off in the middle of it. */
const CUT_CHARACTERS = 8;

const HINTS: Partial<Record<ErrorCode, string>> = {
  timeout: 'run it by hand; see auth.commandTimeoutSeconds',
  'answer-too-large': 'it must print the secret only',
  'local-io': 'look at its path and its rights',
};

export interface CommandOptions {
  /** The program and its arguments; no shell. */
  readonly argv: readonly string[];
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * What the program wrote to its standard output.
 * @throws JobtailError secret-unavailable, aborted. Messages name the program, never its arguments or its output.
 */
export async function outputOf({ argv, timeoutMs, maxBytes, signal }: CommandOptions): Promise<Buffer> {
  const [program = '', ...args] = argv;
  const options = { command: program, args, env: process.env, limit: { totalMs: timeoutMs }, mostBytes: maxBytes };
  const end = await printedBy({ ...options, signal }).catch((thrown: unknown) => {
    const { code, message } = asJobtailError(thrown);
    if (code === 'aborted') throw new JobtailError('aborted', 'the sign-in was stopped');
    const hint = HINTS[code] ?? 'look at the command in the section auth';
    throw new JobtailError('secret-unavailable', message, { hint });
  });
  if (end.code === 0) return end.printed;
  const lines = end.printed
    .toString()
    .split(/\r?\n/)
    .filter((line) => line !== '');
  const text = end.said.length < MOST_SAID ? end.said : end.said.slice(CUT_CHARACTERS);
  const said = safeText(text, [...args.filter((arg) => arg.length >= MIN_HIDDEN_ARGUMENT), ...lines]);
  const how = end.killedBy === null ? `ended with exit code ${end.code}` : `was ended by ${end.killedBy}`;
  throw new JobtailError('secret-unavailable', `the program ${program} ${said === '' ? how : `${how}: ${said}`}`, {
    hint: 'run it by hand as the user of the agent',
  });
}
