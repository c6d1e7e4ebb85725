/** The output of the sending end of the old scp protocol: lines, bytes of files, and a zero after them. */
import { JobtailError } from '../errors.ts';

/** The other side does not speak the protocol. */
export class NotScp extends JobtailError {
  constructor(said: string) {
    super('unexpected-answer', `it answers scp with ${JSON.stringify(said.slice(0, MOST_SHOWN))}`);
  }
}

const MOST_LINE_BYTES = 4096;
const MOST_SHOWN = 100;

/** A line of the sender: a file that comes now, a directory that begins or ends, an error of one file, or the end. */
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

  /** The next bytes of a file; fewer if the other side ends before. */
  async *bytes(count: number): AsyncGenerator<Buffer> {
    for (let left = count; left > 0; ) {
      if (this.#rest.length === 0 && !(await this.#more())) return;
      const piece = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }

  /** Whether the received file is complete: the sender confirms it after the bytes. */
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
      if (end > MOST_LINE_BYTES || (end < 0 && this.#rest.length > MOST_LINE_BYTES))
        throw new NotScp(String(this.#rest));
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
