/**
 * The agent's log: JSON lines for a journal, readable lines for a terminal. Field names are fixed: `jobId`, `taskId`,
 * `file`, `scope`, `code`, `err`, `hint`. Errors are logged by message and code only: what they carry besides may be
 * large, and is nobody's business.
 */
import { pino } from 'pino';
import pretty from 'pino-pretty';
import type { Log } from '../agent/ports.ts';

export interface LogOptions {
  readonly level: string;
  /** Where the lines go: the standard error of the process, unless a test takes them. */
  readonly stream?: NodeJS.WritableStream & { isTTY?: boolean };
}

export function createLog({ level, stream = process.stderr }: LogOptions): Log {
  const options = {
    level,
    base: null,
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  if (stream.isTTY) {
    const shown = pretty({ destination: stream, sync: true, ignore: 'time', hideObject: true, translateTime: false });
    return pino({ ...options, timestamp: false, formatters: {} }, shown);
  }
  return pino(options, stream);
}
