/** The process of a command: signals, error output and exit code. */
import { setMaxListeners } from 'node:events';
import { type Command, CommanderError, InvalidArgumentError } from 'commander';
import type { Log } from '../agent/ports/host.ts';
import { AGENT_CONTINUES, asJobtailError, EXIT, JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { logLine, printableLines } from '../printable.ts';
import { columnsOf, wrapToColumns } from './show/terminal.ts';

let stoppedCode: number = EXIT.interrupted;
let running: AbortSignal | undefined;

/**
 * Runs `work` until it ends or a signal arrives: the first SIGTERM or SIGINT fires its signal, a second one ends the
 * process. Work that was stopped ends with 130 or 143, unless it serves until it is stopped. Work within work has the
 * same signal, so a signal between two steps of a command stops the next one.
 */
export async function untilStopped<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { isServer = false }: { readonly isServer?: boolean } = {},
): Promise<T> {
  if (running !== undefined) return await work(running);
  const controller = new AbortController();
  running = controller.signal;
  // Every call in flight adds a listener.
  setMaxListeners(0, controller.signal);
  const stop = (name: NodeJS.Signals) => {
    if (controller.signal.aborted) process.exit(stoppedCode);
    stoppedCode = name === 'SIGTERM' ? EXIT.terminated : EXIT.interrupted;
    if (!isServer) process.exitCode = stoppedCode;
    controller.abort();
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  try {
    return await work(controller.signal);
  } finally {
    running = undefined;
    process.off('SIGTERM', stop);
    process.off('SIGINT', stop);
  }
}

/** Prints an error and its hint; returns the exit code. */
export function reportError(thrown: unknown): number {
  // Commander has printed its own error, but not that of a parser that a command calls itself.
  const isOwn = thrown instanceof InvalidArgumentError;
  if (thrown instanceof CommanderError && !isOwn) return thrown.exitCode === 0 ? EXIT.ok : EXIT.usage;
  const error = isOwn ? new JobtailError('usage', thrown.message) : asJobtailError(thrown);
  if (error.code === 'aborted') return stoppedCode;
  writeMessage(error.message, error.hint?.replace(AGENT_CONTINUES, ', then run the command again'));
  if (error.code === 'internal') {
    const { stack = '' } = error.cause instanceof Error ? error.cause : error;
    process.stderr.write(`${printableLines(stack)}\n`);
  }
  return error.policy.exitCode;
}

function writeMessage(message: string, hint = ''): void {
  const columns = columnsOf(process.stderr);
  const indent = ' '.repeat('agent: '.length);
  const lines = [message, hint].flatMap((text) => (text === '' ? [] : printableLines(text).split('\n')));
  const wrapped = lines.flatMap((line) => wrapToColumns(line, columns - indent.length));
  process.stderr.write(`agent: ${wrapped.join(`\n${indent}`)}\n`);
}

let isVerbose = false;

/** From now on, a command also prints what is only for the debug level of a log. */
export function beVerbose(command: Command): void {
  isVerbose = true;
  setLogLevel(command, 'debug');
}

/** From now on, a command prints only errors: nothing on standard output, but the paths of watch, which are its result. */
export function beQuiet(command: Command): void {
  setLogLevel(command, 'error');
  if (command.name() !== 'watch') process.stdout.write = () => true;
}

function setLogLevel(command: Command, level: string): void {
  if (command.name() === 'run' && command.getOptionValue('logLevel') === undefined)
    command.setOptionValue('logLevel', level);
}

/** Warnings and errors as sentences. Not by pino, which takes longer to load than many commands run. */
export function commandLog(): Log {
  const verbose: Log['debug'] = (fields, message) => {
    if (isVerbose) process.stderr.write(`agent: ${printableLines(logLine(fields, message))}\n`);
  };
  const write: Log['warn'] = ({ scope, code: _, err, hint, retryAt, ...fields }, message) => {
    const what = message === 'operation failed' ? String(err) : logLine({ ...fields, err }, message);
    const next = retryAt === undefined ? '' : `; the next attempt is at ${retryAt}`;
    writeMessage(`${scope === undefined ? '' : `${scope}: `}${what}${next}`, hint === undefined ? '' : String(hint));
  };
  return { debug: verbose, info: verbose, warn: write, error: write };
}

/**
 * Runs a command for each job, `places` at a time, until it is stopped, also after a failure; the first failure decides the
 * exit code.
 */
export function forEach(
  jobIds: readonly JobId[],
  work: (jobId: JobId, signal: AbortSignal) => Promise<void>,
  places = 1,
): Promise<void> {
  const waiting = [...new Set(jobIds)];
  const workUntilNone = async (signal: AbortSignal) => {
    for (let jobId = waiting.shift(); jobId !== undefined; jobId = waiting.shift()) {
      try {
        await work(jobId, signal);
      } catch (thrown) {
        if (jobIds.length === 1) throw thrown;
        const code = reportError(thrown);
        process.exitCode ||= code;
        if (asJobtailError(thrown).code === 'aborted') waiting.length = 0;
      }
    }
  };
  return untilStopped(
    async (signal) => void (await Promise.all(Array.from({ length: places }, () => workUntilNone(signal)))),
  );
}
