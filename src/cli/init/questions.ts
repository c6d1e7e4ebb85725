/** Questions on the terminal. */
import readline from 'node:readline/promises';
import { Writable } from 'node:stream';
import pc from 'picocolors';
import { JobtailError } from '../../errors.ts';
import { printable } from '../../printable.ts';

export interface Question {
  readonly text: string;
  /** Taken if the answer is empty, and where there is no terminal. */
  readonly suggestion?: string | undefined;
  /** Why an answer is none; asked again then. */
  readonly refuse?: (answer: string) => string | undefined;
  /** What is typed is not shown. */
  readonly secret?: boolean;
}

/** The answer; `aborted` if there will be none. Where there is no terminal, the flag is named that is missing. */
export type Ask = (flag: string, question: Question) => Promise<string>;

export function askerOf(signal: AbortSignal): Ask {
  return async (flag, { text, suggestion, refuse, secret = false }) => {
    if (!process.stdin.isTTY) {
      if (suggestion !== undefined) return suggestion;
      throw new JobtailError('usage', `${flag} is missing, and there is no terminal to ask on`, {
        hint: 'agent init --help names all flags',
      });
    }
    const shown = suggestion === undefined ? `${text}: ` : `${text} ${pc.dim(`[${printable(suggestion)}]`)}: `;
    for (;;) {
      const typed = await lineTyped(shown, secret, signal);
      const answer = typed === '' ? (suggestion ?? '') : typed;
      const why = answer === '' ? 'an answer is needed' : refuse?.(answer);
      if (why === undefined) return answer;
      process.stderr.write(`  ${pc.yellow(why)}\n`);
    }
  };
}

async function lineTyped(prompt: string, secret: boolean, signal: AbortSignal): Promise<string> {
  const hidden = new Writable({ write: (_bytes, _encoding, done) => done() });
  const lines = readline.createInterface({
    input: process.stdin,
    output: secret ? hidden : process.stderr,
    terminal: process.stdin.isTTY,
  });
  const closed = new AbortController();
  lines.once('close', () => closed.abort());
  lines.once('SIGINT', () => closed.abort());
  // readline erases the line before it writes its question: a prompt that stands there already would be gone.
  if (secret) process.stderr.write(prompt);
  try {
    const typed = await lines.question(secret ? '' : prompt, { signal: AbortSignal.any([signal, closed.signal]) });
    return secret ? typed : typed.trim();
  } catch {
    throw new JobtailError('aborted', 'there was no answer');
  } finally {
    lines.close();
    if (secret) process.stderr.write('\n');
  }
}
