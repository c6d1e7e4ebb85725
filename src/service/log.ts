/**
 * The agent's log: JSON lines for a journal, readable lines for a terminal. Field names are fixed: `jobId`, `file`,
 * `scope`, `code`, `err`, `hint`. Errors are logged by message and code only: what they carry besides may be large, and
 * is nobody's business.
 *
 * Levels: error = data at risk, or the agent stops. warn = it retries by itself. info = start, stop, rewritten, settled.
 * debug = every call and chunk.
 */
import { pino } from 'pino';
import pretty from 'pino-pretty';
import type { Log } from '../agent/ports.ts';
import { type LogStream, standardError } from './log-stream.ts';

export interface LogOptions {
  readonly level: string;
  /** Where the lines go, if not to the standard error of the process. */
  readonly stream?: LogStream;
}

/** The log of a command that ends: what has to be said, in the words of a person, wherever its standard error goes. */
export function commandLog(): Log {
  const destination = process.stderr.on('error', () => {});
  const messageFormat = 'agent: {msg}{if hint} ({hint}){end}';
  return pino(
    { level: 'warn', base: null },
    pretty({ destination, sync: true, ignore: 'time,level', hideObject: true, colorize: false, messageFormat }),
  );
}

/** A log whose level can be changed while it is in use. */
export interface AdjustableLog extends Log {
  level: string;
}

export function createLog({ level, stream }: LogOptions): AdjustableLog {
  const options = {
    level,
    base: null,
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  if (stream === undefined && process.stderr.isTTY) {
    const destination = process.stderr.on('error', () => {});
    const messageFormat = '{msg}{if hint} ({hint}){end}';
    const looks = { translateTime: 'SYS:HH:MM:ss', ignore: 'pid', hideObject: true, messageFormat };
    return pino({ ...options, formatters: {} }, pretty({ destination, sync: true, ...looks }));
  }
  return pino(options, stream ?? standardError(process.env));
}
