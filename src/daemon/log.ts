/** The agent's log. Errors are logged by message and code only: other fields may be large or private. */
import fs from 'node:fs';
import { type LoggerOptions, pino, stdTimeFunctions } from 'pino';
import sonic from 'sonic-boom';
import type { Log } from '../agent/ports/host.ts';
import { logLine, printableLines } from '../printable.ts';
import type { Secrets } from '../redact.ts';

interface LogOptions {
  readonly level: string;
  readonly secrets?: Secrets;
  readonly stream: LogStream;
}

/** Text of a line may come from outside: control characters are escaped, and secrets are removed. */
function safeLines(secrets: Secrets | undefined): NonNullable<LoggerOptions['hooks']> {
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

export interface AdjustableLog extends Log {
  level: string;
}

const optionsOf = ({ level, secrets }: LogOptions): LoggerOptions => ({
  level,
  base: null,
  hooks: safeLines(secrets),
  timestamp: stdTimeFunctions.isoTime,
});

export async function logFor(options: LogOptions): Promise<AdjustableLog> {
  if (!process.stderr.isTTY) return createLog(options);
  // Loaded only for a terminal, because it takes time.
  const { default: pretty } = await import('pino-pretty');
  const destination = process.stderr.on('error', () => {});
  const messageFormat = ({ msg, level: _, time: __, ...fields }: Record<string, unknown>) =>
    logLine(fields, String(msg));
  const style = { translateTime: 'SYS:HH:MM:ss', ignore: 'pid', hideObject: true, messageFormat };
  return pino(optionsOf(options), pretty({ destination, ...style }));
}

export function createLog(options: LogOptions): AdjustableLog {
  const formatters = { level: (label: string) => ({ level: label }) };
  return pino({ ...optionsOf(options), formatters }, options.stream);
}

/** The used part of a stream: of `process.stderr`, or of a test. */
interface LineOutput {
  write(text: string): unknown;
  readonly writableLength: number;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

/** Maximum bytes that wait for a reader. */
const MAX_WAITING_BYTES = 1024 * 1024;

/** Prefixes of lines for the journal: the levels of syslog (sd-daemon(3)); of all others, 7. */
const PRIORITIES: Readonly<Record<string, string>> = { error: '<3>', warn: '<4>', info: '<6>' };

export class LogStream {
  readonly #output: LineOutput;
  readonly #journal: boolean;
  #lost = 0;
  #unsaid = 0;

  constructor({ output, journal = false }: { readonly output: LineOutput; readonly journal?: boolean }) {
    this.#output = output;
    this.#journal = journal;
    // A reader that has gone must not end the agent.
    output.on('error', () => {});
  }

  get lost(): number {
    return this.#lost;
  }

  write(line: string): void {
    if (this.#reportLost() && this.#put(line)) return;
    this.#lost++;
    this.#unsaid++;
  }

  /** Logs how many lines were lost, if any; false if that line was not written. */
  #reportLost(): boolean {
    const lines = this.#unsaid;
    if (lines === 0) return true;
    const line = {
      level: 'warn',
      time: new Date().toISOString(),
      lines,
      msg: 'log lines lost, their reader is too slow',
    };
    if (!this.#put(`${JSON.stringify(line)}\n`)) return false;
    this.#unsaid = 0;
    return true;
  }

  #put(line: string): boolean {
    if (this.#output.writableLength > MAX_WAITING_BYTES) return false;
    const level = this.#journal ? /^\{"level":"(\w+)"/.exec(line)?.[1] : undefined;
    try {
      this.#output.write(level === undefined ? line : `${PRIORITIES[level] ?? '<7>'}${line}`);
      return true;
    } catch {
      return false;
    }
  }
}

export function standardError(env: Readonly<Record<string, string | undefined>>): LogStream {
  const { dev, ino } = fs.fstatSync(2);
  const journal = env['JOURNAL_STREAM'] === `${dev}:${ino}`;
  return new LogStream({ output: fs.fstatSync(2).isFile() ? fileOutput(2) : process.stderr, journal });
}

/** A stream of Node.js would end after its first failure, such as a full disk; here, lines wait in memory. */
export function fileOutput(fd: number): LineOutput {
  const file = new sonic.SonicBoom({ fd, sync: true, maxLength: MAX_WAITING_BYTES });
  // Thrown from `write`.
  file.on('drop', () => {
    throw new Error('too many lines wait');
  });
  return {
    writableLength: 0,
    on: (event, listener) => file.on(event, listener),
    write: (text) => file.write(text),
  };
}
