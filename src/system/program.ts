/** Runs a program without a shell, in a process group, until its end or a limit: then it is stopped, or killed. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
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
  readonly input?: Buffer;
  /** Receives its standard output. What it throws stops the program. */
  readonly onOutput?: (bytes: Buffer) => void;
  readonly limit: Limit;
  /** Characters at the end of its standard error that are kept; `MAX_STDERR` if left out. */
  readonly maxStderr?: number;
  readonly signal: AbortSignal;
}

export interface ProgramEnd {
  /** Null if a signal ended it. */
  readonly code: number | null;
  readonly killedBy: NodeJS.Signals | null;
  /** The end of what it wrote to its standard error: at most `maxStderr` characters. */
  readonly stderr: string;
}

/** The program is not there; another one may be. */
export class NotInstalled extends JobtailError {}

/** Its limit is over. */
export class OverLimit extends JobtailError {
  /** The end of what the program wrote to its standard error, such as a code that a person has to enter. */
  stderr = '';
}

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
/** A process that an ended program left may hold its output: so long more of it is waited for. */
const LEFT_MS = 1_000;

/** @throws what `onOutput` throws; NotInstalled; JobtailError `local-io`, `timeout`, `aborted`: they name no argument */
export async function runProgram(options: ProgramOptions): Promise<ProgramEnd> {
  const { command, input, onOutput, limit, maxStderr = MAX_STDERR, signal } = options;
  if (signal.aborted) throw stopped(command);
  const child = await start(options);
  const stop = new LinkedAbort(signal, () => stopped(command));
  const clock = startLimit(limit, () => stop.abort(overLimit(command, limit)));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-maxStderr);
  });
  // It may end before it has read everything.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  child.stdout.on('error', (error) => stop.abort(error));
  child.stdout.on('data', (bytes: Buffer) => {
    clock.heard();
    try {
      if (!stop.signal.aborted) onOutput?.(bytes);
    } catch (error) {
      stop.abort(error);
    }
  });
  try {
    const end = await endOf(child, stop.signal, onOutput !== undefined);
    const reason: unknown = stop.signal.reason;
    if (reason instanceof OverLimit) reason.stderr = stderr;
    stop.signal.throwIfAborted();
    return { ...end, stderr };
  } finally {
    clock.end();
    stop.release();
  }
}

/** What a program prints, and how it ended. @throws as `runProgram`; JobtailError `answer-too-large` */
export async function printedBy(
  options: Omit<ProgramOptions, 'onOutput'> & { readonly maxBytes: number },
): Promise<ProgramEnd & { readonly printed: Buffer }> {
  const { command, maxBytes } = options;
  const pieces: Buffer[] = [];
  let bytes = 0;
  const onOutput = (piece: Buffer) => {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > maxBytes)
      throw new JobtailError('answer-too-large', `the program ${command} printed more than ${maxBytes} bytes`);
  };
  const end = await runProgram({ ...options, onOutput });
  return { ...end, printed: Buffer.concat(pieces) };
}

async function start({ command, args, env = plainEnvironment() }: ProgramOptions) {
  // Few commands start a program.
  const { spawn } = await import('node:child_process');
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

/**
 * Resolves when the program has ended and its output was read, or when it was given up; ends it with the signal. What an
 * ended program left goes on; `isHeard`: what that prints counts as output while it prints.
 */
function endOf(
  child: ChildProcessWithoutNullStreams,
  stop: AbortSignal,
  isHeard: boolean,
): Promise<Omit<ProgramEnd, 'stderr'>> {
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    const settle = () => {
      clearTimeout(timer);
      stop.removeEventListener('abort', ask);
      // If they are open: it waits for a dead disk, or what it left has them.
      for (const stream of child.stdio) stream?.destroy();
      child.unref();
      resolve({ code: child.exitCode, killedBy: child.signalCode });
    };
    const kill = () => {
      signalGroup(child, 'SIGKILL');
      timer = setTimeout(settle, GRACE_MS);
    };
    const ask = () => {
      clearTimeout(timer);
      if (hasExited(child)) return settle();
      // rsync keeps what came of a file when it is asked to end.
      signalGroup(child, 'SIGTERM');
      timer = setTimeout(kill, GRACE_MS);
    };
    const waitForOutput = () => {
      if (stop.aborted) return;
      clearTimeout(timer);
      timer = setTimeout(settle, LEFT_MS);
    };
    child.once('exit', () => {
      waitForOutput();
      if (isHeard) child.stdout.on('data', waitForOutput);
    });
    child.once('close', () => {
      if (stop.aborted) signalGroup(child, 'SIGKILL');
      settle();
    });
    if (stop.aborted) ask();
    else stop.addEventListener('abort', ask);
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

const USUAL = /^(?:PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_[A-Z]+|TZ)$/;

/** For a program of the configuration: who runs it, in which language, and the variables that the configuration names. */
export function environmentWith(names: readonly string[] = []): NodeJS.ProcessEnv {
  const given = Object.entries(process.env).filter(([name]) => USUAL.test(name) || names.includes(name));
  return Object.fromEntries(given);
}

function plainEnvironment(): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return { ...(PATH === undefined ? {} : { PATH }), ...(HOME === undefined ? {} : { HOME }), LC_ALL: 'C' };
}

const stopped = (command: string) => new JobtailError('aborted', `the program ${command} was stopped`);

function overLimit(command: string, limit: Limit): OverLimit {
  const what =
    'totalMs' in limit ? `did not end within ${limit.totalMs / 1000}` : `did nothing for ${limit.idleMs / 1000}`;
  return new OverLimit('timeout', `the program ${command} ${what} s`);
}

/** Without the error itself, which holds the arguments. */
function notStarted(command: string, code: string): JobtailError {
  if (code === 'ENOENT' && command.includes('/') && fs.existsSync(command))
    return new JobtailError('local-io', `the program ${command} cannot be started: its interpreter is not there`, {
      hint: 'check its first line (#!): it names no program, or ends with CR (save the file with LF line ends)',
    });
  if (code === 'ENOENT') return new NotInstalled('local-io', `the program ${command} is not installed`);
  const isForbidden = code === 'EACCES';
  const why = isForbidden ? `permission denied, ${code}` : code;
  return new JobtailError('local-io', `the program ${command} cannot be started (${why})`, {
    hint: isForbidden
      ? `make it executable for the user of the agent (chmod +x), and see that it is a file`
      : 'see that there are not too many processes or open files (ulimit -u, ulimit -n)',
  });
}

export type Limit = { readonly totalMs: number } | IdleLimit;

interface IdleLimit {
  readonly idleMs: number;
  /** Grows while the program makes progress; default: its standard output. Standard error never counts. */
  readonly progress?: () => Promise<number>;
}

/** How often `progress` is asked. */
const TICK_MS = 500;

/** Calls `onOver` when the limit is over. Output that is `heard` is progress, unless that is reported otherwise. */
function startLimit(limit: Limit, onOver: () => void): { heard(): void; end(): void } {
  const isTotal = 'totalMs' in limit;
  const ms = isTotal ? limit.totalMs : limit.idleMs;
  const progress = isTotal ? undefined : limit.progress;
  let timer: NodeJS.Timeout | undefined = setTimeout(onOver, ms);
  const again = () => {
    if (timer === undefined) return;
    clearTimeout(timer);
    timer = setTimeout(onOver, ms);
  };
  const watching = progress && watchProgress(progress, again, Math.min(TICK_MS, ms / 4));
  const end = () => {
    clearTimeout(timer);
    timer = undefined;
    clearInterval(watching);
  };
  return { heard: isTotal || progress !== undefined ? () => {} : again, end };
}

function watchProgress(progress: () => Promise<number>, onProgress: () => void, everyMs: number): NodeJS.Timeout {
  let last: number | undefined;
  let isReading = false;
  return setInterval(async () => {
    if (isReading) return;
    isReading = true;
    const now = await progress().catch(() => last);
    isReading = false;
    if (now !== last) onProgress();
    last = now;
  }, everyMs);
}
