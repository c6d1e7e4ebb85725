/** A secret that a program prints: `oidc-token NAME`, `pass show NAME`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { JobtailError } from '../errors.ts';
import { safeText } from './safe-text.ts';

const MAX_ERROR_BYTES = 4096;
/** Shorter arguments are words such as `-p`; hiding them would only make the program's message unreadable. */
const MIN_HIDDEN_ARGUMENT = 4;

export interface CommandOptions {
  /** The program and its arguments; no shell. */
  readonly argv: readonly string[];
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * What the program wrote to its standard output. It runs in a process group of its own, which is killed when the time
 * is over or the signal fires.
 * @throws JobtailError secret-unavailable, aborted. Messages name the program, never its arguments or its output.
 */
export async function outputOf(options: CommandOptions): Promise<Buffer> {
  const { argv, timeoutMs, maxBytes, signal } = options;
  const [program = '', ...args] = argv;
  const failed = (what: string, hint: string) =>
    new JobtailError('secret-unavailable', `the program ${program} ${what}`, { hint });
  if (signal.aborted) throw stopped();

  return new Promise((resolve, reject) => {
    const output: Buffer[] = [];
    const errors: Buffer[] = [];
    const child = start(program, args);
    if (child === undefined) {
      reject(failed('cannot be started', 'look at the command in the section auth'));
      return;
    }
    const giveUp = (error: JobtailError) => {
      settle();
      kill(child);
      reject(error);
    };
    const abort = () => giveUp(stopped());
    const timer = setTimeout(
      () =>
        giveUp(failed(`did not end within ${timeoutMs / 1000} s`, 'run it by hand; see auth.commandTimeoutSeconds')),
      timeoutMs,
    );
    signal.addEventListener('abort', abort, { once: true });
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    };

    child.stdout?.on('data', (chunk: Buffer) => {
      output.push(chunk);
      if (sizeOf(output) > maxBytes)
        giveUp(failed(`printed more than ${maxBytes} bytes`, 'it must print the secret only'));
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      if (sizeOf(errors) < MAX_ERROR_BYTES) errors.push(chunk);
    });
    child.on('error', (error: NodeJS.ErrnoException) =>
      giveUp(failed(`cannot be started (${error.code ?? 'unknown error'})`, 'look at its path and its rights')),
    );
    child.on('close', (code, killedBy) => {
      settle();
      if (code === 0) return resolve(Buffer.concat(output));
      const secrets = [...args.filter((arg) => arg.length >= MIN_HIDDEN_ARGUMENT), ...linesOf(output)];
      const said = safeText(Buffer.concat(errors).toString(), secrets);
      const end = killedBy === null ? `ended with exit code ${code}` : `was ended by ${killedBy}`;
      reject(failed(said === '' ? end : `${end}: ${said}`, 'run it by hand as the user of the agent'));
    });
  });
}

const stopped = () => new JobtailError('aborted', 'the sign-in was stopped');

function start(program: string, args: readonly string[]): ChildProcess | undefined {
  try {
    return spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  } catch {
    // The error would show the arguments.
    return undefined;
  }
}

/** Ends the program with all it started, and lets go of its output, which somebody may still hold open. */
function kill(child: ChildProcess): void {
  child.stdout?.destroy();
  child.stderr?.destroy();
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

const sizeOf = (chunks: readonly Buffer[]) => chunks.reduce((sum, chunk) => sum + chunk.length, 0);

const linesOf = (chunks: readonly Buffer[]) =>
  Buffer.concat(chunks)
    .toString()
    .split(/\r?\n/)
    .filter((line) => line !== '');
