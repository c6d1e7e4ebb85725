/**
 * Where log lines go: a stream that neither blocks nor ends the agent, whatever its reader does. Lines that nobody
 * takes (a full journal, a stopped pager, a disk without room) are dropped beyond a bound, counted, and the number is
 * said as soon as lines are taken again.
 */
import fs from 'node:fs';

/** What of a stream is used: `process.stderr`, or the stream of a test. */
export interface LineOutput {
  write(text: string): unknown;
  readonly writableLength: number;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

/** Bytes that wait for a reader. */
const MOST_WAITING_BYTES = 1024 * 1024;

/** Levels of syslog, which a line for the journal begins with (sd-daemon(3)). */
const PRIORITIES: Readonly<Record<string, string>> = { error: '<3>', warn: '<4>', info: '<6>', debug: '<7>' };

export interface LogStreamOptions {
  readonly output: LineOutput;
  /** The journal reads them: lines get its priorities. */
  readonly journal?: boolean;
}

export class LogStream {
  readonly #output: LineOutput;
  readonly #journal: boolean;
  #lost = 0;
  #unsaid = 0;

  constructor({ output, journal = false }: LogStreamOptions) {
    this.#output = output;
    this.#journal = journal;
    // A reader that has gone must not end the agent.
    output.on('error', () => {});
  }

  /** Lines that were dropped since the start. */
  get lost(): number {
    return this.#lost;
  }

  /** Takes one line with its end. */
  write(line: string): void {
    if (this.#output.writableLength > MOST_WAITING_BYTES) {
      this.#lost++;
      this.#unsaid++;
      return;
    }
    if (this.#unsaid > 0) {
      const lines = this.#unsaid;
      this.#unsaid = 0;
      const said = {
        level: 'warn',
        time: new Date().toISOString(),
        lines,
        msg: `${lines} log lines were lost: nobody took them`,
      };
      this.#put(`${JSON.stringify(said)}\n`);
    }
    this.#put(line);
  }

  #put(line: string): void {
    const level = this.#journal ? /^\{"level":"(\w+)"/.exec(line)?.[1] : undefined;
    this.#output.write(level === undefined ? line : `${PRIORITIES[level] ?? '<7>'}${line}`);
  }
}

/** The standard error of this process, made safe. */
export function standardError(env: Readonly<Record<string, string | undefined>>): LogStream {
  const { dev, ino } = fs.fstatSync(2);
  const journal = env['JOURNAL_STREAM'] === `${dev}:${ino}`;
  return new LogStream({ output: fs.fstatSync(2).isFile() ? new FileOutput(2) : process.stderr, journal });
}

/** A file: Node.js would give it up for good after the first failure, for example of a full disk. */
class FileOutput implements LineOutput {
  readonly writableLength = 0;
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  write(text: string): void {
    try {
      fs.writeSync(this.#fd, text);
    } catch {
      // A log that cannot be written cannot say so either.
    }
  }

  on(): void {}
}
