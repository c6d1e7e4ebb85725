/**
 * Runs a program of this machine to its end: no shell, a process group of its own, and a limit. However the program
 * behaves, this ends: it is asked to, then killed with all it started, then given up.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { JobtailError } from '../errors.ts';
import { LinkedAbort } from '../linked-abort.ts';

export interface ProgramOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** If left out: nothing that steers a program from outside, and messages in English. */
  readonly env?: NodeJS.ProcessEnv;
  /** All that it reads on its standard input. */
  readonly input?: Buffer;
  /** Reads its standard output as far as it wants to. What it throws stops the program. */
  readonly talk?: (output: AsyncIterable<Buffer>) => Promise<void>;
  readonly limit: Limit;
  readonly signal: AbortSignal;
}

export interface ProgramEnd {
  /** Null if a signal ended it. */
  readonly code: number | null;
  readonly killedBy: NodeJS.Signals | null;
  /** The end of what it wrote to its standard error: at most `MAX_STDERR` characters. */
  readonly stderr: string;
}

/** The program is not there; another one may be. */
export class NotInstalled extends JobtailError {}

export function isInstalled(command: string): boolean {
  const directories = (process.env['PATH'] ?? '').split(path.delimiter).filter((directory) => directory !== '');
  return directories.some((directory) => {
    try {
      fs.accessSync(path.join(directory, command), fs.constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export const MAX_STDERR = 4_000;
/** From asking a program to end to killing it, and from that to giving it up. */
const GRACE_MS = 1_000;
/** A process that an ended program left may hold its output: so long it is waited for. */
const LEFT_MS = 1_000;

/** @throws what `talk` throws; NotInstalled; JobtailError `local-io`, `timeout`, `aborted`: they name no argument */
export async function runProgram(options: ProgramOptions): Promise<ProgramEnd> {
  const { command, input, talk, limit, signal } = options;
  if (signal.aborted) throw stopped(command);
  const child = await start(options);
  const stop = new LinkedAbort(signal, () => stopped(command));
  const clock = new LimitClock(limit, () => stop.abort(overLimit(command, limit)));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-MAX_STDERR);
  });
  // It may end before it has read everything.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const talking = async () => {
    if (talk === undefined) return void child.stdout.on('data', () => clock.go());
    try {
      await talk(outputOf(child, clock));
    } catch (error) {
      stop.abort(error);
    }
    // Its later output is dropped; its end is awaited.
    child.stdout.destroy();
    clock.go();
  };
  try {
    const talked = talking();
    const [end] = await Promise.all([endOf(child, stop.signal, talked), talked]);
    stop.signal.throwIfAborted();
    return { ...end, stderr };
  } finally {
    clock.end();
    stop.release();
  }
}

/** What a program prints, and how it ended. @throws as `runProgram`; JobtailError `answer-too-large` */
export async function printedBy(
  options: Omit<ProgramOptions, 'talk'> & { readonly maxBytes: number },
): Promise<ProgramEnd & { readonly printed: Buffer }> {
  const { command, maxBytes } = options;
  const pieces: Buffer[] = [];
  let bytes = 0;
  const talk = async (output: AsyncIterable<Buffer>) => {
    for await (const piece of output) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > maxBytes) {
        throw new JobtailError('answer-too-large', `the program ${command} printed more than ${maxBytes} bytes`);
      }
    }
  };
  const end = await runProgram({ input: Buffer.alloc(0), ...options, talk });
  return { ...end, printed: Buffer.concat(pieces) };
}

async function start({ command, args, env = plainEnvironment() }: ProgramOptions) {
  try {
    // If this process is killed, the pipes break, and the program that writes to them ends.
    const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    await once(child, 'spawn');
    return child;
  } catch (error) {
    throw notStarted(command, (error as NodeJS.ErrnoException).code ?? 'unknown error');
  }
}

const hasExited = ({ exitCode, signalCode }: ChildProcessWithoutNullStreams) =>
  exitCode !== null || signalCode !== null;

/** Ends with the program, even if a process that it left has its output. */
async function* outputOf(child: ChildProcessWithoutNullStreams, clock: LimitClock): AsyncGenerator<Buffer> {
  const { stdout } = child;
  let isWaiting = true;
  let timer: NodeJS.Timeout | undefined;
  const limitWait = () => {
    if (isWaiting && hasExited(child)) timer = setTimeout(() => stdout.destroy(), LEFT_MS);
  };
  child.once('exit', limitWait);
  try {
    limitWait();
    for await (const bytes of stdout) {
      isWaiting = false;
      clearTimeout(timer);
      clock.pause();
      yield bytes;
      clock.go();
      isWaiting = true;
      limitWait();
    }
  } catch (error) {
    if (!hasExited(child)) throw error;
  } finally {
    clearTimeout(timer);
    child.off('exit', limitWait);
  }
}

/**
 * Resolves when the program has ended and its output was read, or when it was given up; ends it with the signal. What an
 * ended program left goes on.
 */
function endOf(
  child: ChildProcessWithoutNullStreams,
  stop: AbortSignal,
  talked: Promise<void>,
): Promise<Omit<ProgramEnd, 'stderr'>> {
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    let isClosed = false;
    const settle = (end: Omit<ProgramEnd, 'stderr'>) => {
      clearTimeout(timer);
      stop.removeEventListener('abort', ask);
      resolve(end);
    };
    const letGo = () => {
      // It waits for a dead disk, or what left its group has its streams.
      for (const stream of child.stdio) stream?.destroy();
      child.unref();
      const { exitCode: code, signalCode } = child;
      settle({ code, killedBy: signalCode ?? (code === null ? 'SIGKILL' : null) });
    };
    const kill = () => {
      signalGroup(child, 'SIGKILL');
      timer = setTimeout(letGo, GRACE_MS);
    };
    const ask = () => {
      clearTimeout(timer);
      if (hasExited(child)) return letGo();
      // rsync keeps what came of a file when it is asked to end.
      signalGroup(child, 'SIGTERM');
      timer = setTimeout(kill, GRACE_MS);
    };
    child.once('exit', () => {
      const limitWait = () => {
        if (!stop.aborted && !isClosed) timer = setTimeout(letGo, LEFT_MS);
      };
      void talked.then(limitWait, () => {});
    });
    child.once('close', (code, killedBy) => {
      isClosed = true;
      if (stop.aborted) signalGroup(child, 'SIGKILL');
      settle({ code, killedBy });
    });
    if (stop.aborted) ask();
    else stop.addEventListener('abort', ask, { once: true });
  });
}

function signalGroup({ pid }: ChildProcessWithoutNullStreams, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It has just ended.
  }
}

function plainEnvironment(): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return { ...(PATH === undefined ? {} : { PATH }), ...(HOME === undefined ? {} : { HOME }), LC_ALL: 'C' };
}

const stopped = (command: string) => new JobtailError('aborted', `the program ${command} was stopped`);

function overLimit(command: string, limit: Limit): JobtailError {
  const what =
    'totalMs' in limit ? `did not end within ${limit.totalMs / 1000}` : `did nothing for ${limit.idleMs / 1000}`;
  return new JobtailError('timeout', `the program ${command} ${what} s`);
}

/** Without the error itself, which holds the arguments. */
function notStarted(command: string, code: string): JobtailError {
  if (code === 'ENOENT' && command.includes('/') && fs.existsSync(command))
    return new JobtailError('local-io', `the program ${command} cannot be started: its interpreter is not there`, {
      hint: 'check its first line (#!): it names no program, or ends with CR (save the file with LF line ends)',
    });
  if (code === 'ENOENT') return new NotInstalled('local-io', `the program ${command} is not installed`);
  return new JobtailError('local-io', `the program ${command} cannot be started (${code})`, {
    hint: 'see that it may be run, and that there are not too many processes or open files (ulimit -u, ulimit -n)',
  });
}

export type Limit = { readonly totalMs: number } | IdleLimit;

interface IdleLimit {
  readonly idleMs: number;
  /**
   * A number that grows while the program makes progress; default: its standard output. Standard error never counts.
   */
  readonly progress?: () => Promise<number>;
}

/** How often `progress` is asked. */
const TICK_MS = 500;

/** Calls back when the limit is over. */
class LimitClock {
  readonly #ms: number;
  readonly #onOver: () => void;
  /** Whether the output of the program counts. */
  readonly #hears: boolean;
  readonly #progressTimer: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasEnded = false;

  constructor(limit: Limit, onOver: () => void) {
    const { totalMs, idleMs, progress }: Partial<IdleLimit & { totalMs: number }> = limit;
    this.#ms = totalMs ?? idleMs ?? 0;
    this.#onOver = onOver;
    this.#hears = totalMs === undefined && progress === undefined;
    if (progress !== undefined)
      this.#progressTimer = setInterval(this.#watchProgress(progress), Math.min(TICK_MS, this.#ms / 4));
    this.#begin();
  }

  /** The program wrote output: while that is processed, no time limit runs. */
  pause(): void {
    if (this.#hears) clearTimeout(this.#timer);
  }

  /** It is waited for again. */
  go(): void {
    if (this.#hears) this.#begin();
  }

  end(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    clearInterval(this.#progressTimer);
  }

  #begin(): void {
    if (this.#hasEnded) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#onOver, this.#ms);
  }

  #watchProgress(progress: () => Promise<number>): () => Promise<void> {
    let last: number | undefined;
    let isReading = false;
    return async () => {
      if (isReading) return;
      isReading = true;
      const now = await progress().catch(() => last);
      isReading = false;
      if (now !== last) this.#begin();
      last = now;
    };
  }
}
