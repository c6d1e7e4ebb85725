/** One connection of the old scp protocol: the command, the dialogue, and the received files. */
import fs from 'node:fs/promises';
import type { DirectArrival, DirectFile } from '../agent/ports.ts';
import { JobtailError } from '../errors.ts';
import { runProgram } from '../system/program.ts';
import type { Arrivals } from './arrivals.ts';
import { HOST_ALIAS, type SshRequest } from './ssh-access.ts';

export const MAX_WORDS = 1_000;
/** Linux refuses a command above 128 KiB. */
export const MAX_COMMAND_CHARACTERS = 64_000;
/** Exit code of ssh after a lost connection. */
export const CONNECTION_LOST = 255;
export const YES = '\0';
export const NO = '\u0001not wanted\n';

export interface ScpRun {
  readonly request: SshRequest;
  readonly arrivals: Arrivals;
  works: boolean;
}

export type Reply = (bytes: string) => void;

/** Runs `scp` with these words on the other side; resolves with its exit code and the end of its standard error. */
export async function runScp(
  words: readonly string[],
  { request: { configFile, idleMs, signal } }: ScpRun,
  converse: (records: ScpRecords, reply: Reply) => Promise<void>,
): Promise<{ readonly code: number | null; readonly stderr: string }> {
  const talk = (output: AsyncIterable<Buffer>, reply: Reply) => converse(new ScpRecords(output), reply);
  const args = ['-F', configFile, '-T', '--', HOST_ALIAS, 'scp', ...words];
  try {
    return await runProgram({ command: 'ssh', args, talk, limit: { idleMs }, signal });
  } catch (error) {
    if (!(error instanceof NotScp)) throw error;
    return { code: null, stderr: error.message };
  }
}

/** Receives an announced file, or refuses it as too large. False if the other side ended before the end of the file. */
export async function receiveFile(
  file: DirectFile,
  bytes: number,
  { records, reply }: { readonly records: ScpRecords; readonly reply: Reply },
  { request, arrivals }: ScpRun,
  onWhole = (arrival: DirectArrival) => arrivals.add(arrival, bytes),
): Promise<boolean> {
  if (request.maxFileBytes !== null && bytes > request.maxFileBytes) {
    reply(NO);
    request.onTooLarge(file);
    return true;
  }
  reply(YES);
  const local = arrivals.newPath();
  let isTaken = false;
  try {
    const digest = await arrivals.write(file, local, records.bytes(bytes));
    if (digest.bytes < bytes) return false;
    isTaken = await records.isWhole();
    if (isTaken) await onWhole({ file, path: local, digest });
    reply(YES);
    return true;
  } finally {
    if (!isTaken) await fs.rm(local, { force: true });
  }
}

export class NotScp extends JobtailError {
  constructor(stderr: string) {
    super('unexpected-answer', `it answers scp with ${JSON.stringify(stderr.slice(0, MAX_SHOWN))}`);
  }
}

const MAX_LINE_BYTES = 4096;
const MAX_SHOWN = 100;

/** A line of the sender: a file, the start or end of a directory, an error of one file, or the end. */
export type ScpRecord =
  | { readonly kind: 'file'; readonly bytes: number; readonly name: string }
  | { readonly kind: 'directory'; readonly name: string }
  | { readonly kind: 'up' }
  | { readonly kind: 'missing'; readonly message: string }
  | { readonly kind: 'end' };

export class ScpRecords {
  readonly #output: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(output: AsyncIterable<Buffer>) {
    this.#output = output[Symbol.asyncIterator]();
  }

  async next(): Promise<ScpRecord> {
    const line = await this.#line();
    if (line === undefined || line.startsWith('\u0002')) return { kind: 'end' };
    if (line.startsWith('\u0001')) return { kind: 'missing', message: line.slice(1) };
    if (line === 'E') return { kind: 'up' };
    const [, directory] = /^D[0-7]{4} 0 (.+)$/.exec(line) ?? [];
    if (directory !== undefined) return { kind: 'directory', name: directory };
    const [, digits, name] = /^C[0-7]{4} ([0-9]{1,15}) (.+)$/.exec(line) ?? [];
    if (digits === undefined || name === undefined) throw new NotScp(line);
    return { kind: 'file', bytes: Number(digits), name };
  }

  async *bytes(count: number): AsyncGenerator<Buffer> {
    for (let left = count; left > 0; ) {
      if (this.#rest.length === 0 && !(await this.#more())) return;
      const piece = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }

  /** Whether the file is complete: the sender confirms it after the bytes. */
  async isWhole(): Promise<boolean> {
    if (this.#rest.length === 0 && !(await this.#more())) return false;
    if (this.#rest[0] === 0) {
      this.#rest = this.#rest.subarray(1);
      return true;
    }
    const line = await this.#line();
    if (line?.startsWith('\u0001') === false) throw new NotScp(line);
    return false;
  }

  async #line(): Promise<string | undefined> {
    for (;;) {
      const end = this.#rest.indexOf('\n');
      if (end > MAX_LINE_BYTES || (end < 0 && this.#rest.length > MAX_LINE_BYTES)) throw new NotScp(String(this.#rest));
      if (end >= 0) {
        const line = this.#rest.toString('utf8', 0, end);
        this.#rest = this.#rest.subarray(end + 1);
        return line;
      }
      if (!(await this.#more())) return undefined;
    }
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#output.next();
    if (done === true) return false;
    this.#rest = this.#rest.length === 0 ? value : Buffer.concat([this.#rest, value]);
    return true;
  }
}
