/** Runs a program of this machine to its end: no shell, a small environment, and it ends with the signal. */
import { type ChildProcess, spawn } from 'node:child_process';
import { JobtailError } from '../errors.ts';
import { LinkedAbort } from '../linked-abort.ts';

export interface ProgramOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** What it reads on its standard input. */
  readonly input?: Buffer;
  /** Called with what it writes to its standard output. */
  readonly onOutput?: (text: string) => void;
  readonly signal: AbortSignal;
}

export interface ProgramEnd {
  /** Null if a signal ended it. */
  readonly code: number | null;
  /** The end of what it wrote to its standard error. */
  readonly said: string;
}

/** The program is not there; another one may be. */
export class NotInstalled extends JobtailError {}

const SAID_CHARACTERS = 4_000;
/** From asking a program to end to ending it. */
const GRACE_MS = 1_000;

/** Stops the program with what `onOutput` throws. @throws that; NotInstalled; JobtailError `aborted`, `local-io` */
export async function runProgram({ command, args, input, onOutput, signal }: ProgramOptions): Promise<ProgramEnd> {
  if (signal.aborted) throw aborted();
  // A group of its own, so that what it starts (ssh) ends with it. If this process is killed, the pipe of the standard
  // output breaks, and with it whoever writes progress to it.
  const child = spawn(command, args, { env: environment(), stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', (error) => reject(notStarted(command, error)));
    child.once('close', resolve);
  });
  // Without a process there are no streams either.
  if (child.pid === undefined) return { code: await ended, said: '' };
  const stopping = new LinkedAbort(signal, aborted);
  let killing: NodeJS.Timeout | undefined;
  const stop = () => {
    // rsync keeps what came of a file when it is asked to end.
    signalGroup(child, 'SIGTERM');
    killing = setTimeout(() => signalGroup(child, 'SIGKILL'), GRACE_MS);
  };
  stopping.signal.addEventListener('abort', stop, { once: true });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-SAID_CHARACTERS);
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    try {
      onOutput?.(text);
    } catch (error) {
      stopping.abort(error);
    }
  });
  // It may end before it has read everything.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  try {
    const code = await ended;
    stopping.signal.throwIfAborted();
    return { code, said };
  } finally {
    stopping.release();
    clearTimeout(killing);
  }
}

/** What a program that ends by itself says on its standard output. @throws NotInstalled; JobtailError `aborted` */
export async function outputOf(command: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  const said: string[] = [];
  await runProgram({ command, args, onOutput: (text) => said.push(text), signal });
  return said.join('');
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It has just ended.
  }
}

/** Nothing that steers ssh or rsync from outside, and messages in English. */
function environment(): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return { ...(PATH === undefined ? {} : { PATH }), ...(HOME === undefined ? {} : { HOME }), LC_ALL: 'C' };
}

function aborted(): JobtailError {
  return new JobtailError('aborted', 'the transfer was stopped');
}

function notStarted(command: string, error: NodeJS.ErrnoException): JobtailError {
  if (error.code === 'ENOENT') {
    return new NotInstalled('local-io', `the program ${command} is not installed`, {
      hint: 'install rsync and the OpenSSH client, or set results.transfer to soap',
    });
  }
  return new JobtailError('local-io', `the program ${command} cannot be started (${error.code ?? error.message})`, {
    cause: error,
    hint: 'see that it may be run, and that there are not too many processes or open files (ulimit -u, ulimit -n)',
  });
}
