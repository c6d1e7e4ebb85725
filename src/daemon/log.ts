/**
 * The agent's log: JSON lines for a journal, readable lines for a terminal. Field names are fixed: `jobId`, `file`,
 * `scope`, `code`, `err`, `hint`. Errors are logged by message and code only: what they carry besides may be large, and
 * is nobody's business.
 *
 * Levels: error = data at risk, or the agent stops. warn = it retries by itself. info = start, stop, rewritten, settled.
 * debug = every call and chunk.
 */
import { type LoggerOptions, pino } from 'pino';
import pretty from 'pino-pretty';
import type { Log } from '../agent/ports.ts';
import { printableLines } from '../printable.ts';
import type { Secrets } from '../redact.ts';
import type { LogStream } from './log-stream.ts';

export interface LogOptions {
  readonly level: string;
  /** Nothing of them is logged. */
  readonly secrets?: Secrets;
  /** Where the lines go, if not to the terminal at the standard error of the process. */
  readonly stream?: LogStream;
}

/** Whatever a line says may come from outside: it is shown as text, and without secrets. */
function safeLines(secrets: Secrets | undefined): NonNullable<LoggerOptions['hooks']> {
  const safe = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(safe);
    if (typeof value !== 'string') return value;
    const text = printableLines(value);
    return secrets?.hide(text) ?? text;
  };
  return {
    logMethod([fields, message], method) {
      const safeFields = Object.fromEntries(
        Object.entries(fields as object).map(([name, value]) => [name, safe(value)]),
      );
      method.apply(this, [safeFields, safe(message)] as Parameters<typeof method>);
    },
  };
}

/** The log of a command that ends: what has to be said, in the words of a person, wherever its standard error goes. */
export function commandLog(): Log {
  const destination = process.stderr.on('error', () => {});
  const messageFormat = 'agent: {msg}{if hint} ({hint}){end}';
  return pino(
    { level: 'warn', base: null, hooks: safeLines(undefined) },
    pretty({ destination, sync: true, ignore: 'time,level', hideObject: true, colorize: false, messageFormat }),
  );
}

/** A log whose level can be changed while it is in use. */
export interface AdjustableLog extends Log {
  level: string;
}

export function createLog({ level, stream, secrets }: LogOptions): AdjustableLog {
  const options = {
    level,
    base: null,
    hooks: safeLines(secrets),
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  if (stream === undefined) {
    const destination = process.stderr.on('error', () => {});
    const messageFormat = '{msg}{if hint} ({hint}){end}';
    const looks = { translateTime: 'SYS:HH:MM:ss', ignore: 'pid', hideObject: true, messageFormat };
    return pino({ ...options, formatters: {} }, pretty({ destination, sync: true, ...looks }));
  }
  return pino(options, stream);
}
