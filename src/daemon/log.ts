/**
 * The agent's log: JSON lines for a journal; terminal-log.ts has readable lines for a terminal. Field names are fixed:
 * `jobId`, `file`, `scope`, `code`, `err`, `hint`. Errors are logged by message and code only: what they carry besides may be large, and
 * is nobody's business.
 *
 * Levels: error = data at risk, or the agent stops. warn = it retries by itself. info = start, stop, rewritten, settled.
 * debug = every call and chunk.
 */
import { type LoggerOptions, pino } from 'pino';
import type { Log } from '../agent/ports.ts';
import { printableLines } from '../printable.ts';
import type { Secrets } from '../redact.ts';
import type { LogStream } from './log-stream.ts';

export interface LogOptions {
  readonly level: string;
  /** Nothing of them is logged. */
  readonly secrets?: Secrets;
  readonly stream: LogStream;
}

/** Whatever a line says may come from outside: it is shown as text, and without secrets. */
export function safeLines(secrets: Secrets | undefined): NonNullable<LoggerOptions['hooks']> {
  const safe = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(safe);
    if (typeof value !== 'string') return value;
    const text = printableLines(value);
    return secrets?.hideInMessage(text) ?? text;
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

/** A log whose level can be changed while it is in use. */
export interface AdjustableLog extends Log {
  level: string;
}

/** JSON lines; their time is that of the process. */
export function createLog({ level, stream, secrets }: LogOptions): AdjustableLog {
  const formatters = { level: (label: string) => ({ level: label }) };
  const timestamp = pino.stdTimeFunctions.isoTime;
  return pino({ level, base: null, hooks: safeLines(secrets), formatters, timestamp }, stream);
}
