/** The lines that mirrors grow by, each with a coloured prefix that says which mirror it is of. */
import fs from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import pc from 'picocolors';

interface Tailed {
  readonly file: string;
  readonly prefix: string;
  at: number;
  decoder: StringDecoder;
  /** The beginning of a line whose end has not come. */
  partial: string;
}

const COLOURS = [pc.cyan, pc.yellow, pc.green, pc.magenta, pc.blue, pc.red];
const READ_BYTES = 64 * 1024;

export class LineTail {
  readonly #write: (line: string) => void;
  readonly #tailed: Tailed[] = [];

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  /** Tails a file from its present beginning. */
  add(file: string, name: string): void {
    const colour = COLOURS[this.#tailed.length % COLOURS.length] ?? pc.cyan;
    this.#tailed.push({ file, prefix: colour(`${name} |`), at: 0, decoder: new StringDecoder('utf8'), partial: '' });
  }

  /** Writes what has come since the last look. */
  look(): void {
    for (const tailed of this.#tailed) this.#lookAt(tailed);
  }

  #lookAt(tailed: Tailed): void {
    const handle = openIfThere(tailed.file);
    if (handle === undefined) return;
    try {
      if (fs.fstatSync(handle).size < tailed.at) {
        // A new generation began in place.
        Object.assign(tailed, { at: 0, partial: '', decoder: new StringDecoder('utf8') });
      }
      const bytes = Buffer.allocUnsafe(READ_BYTES);
      for (;;) {
        const read = fs.readSync(handle, bytes, 0, bytes.length, tailed.at);
        if (read === 0) return;
        tailed.at += read;
        this.#take(tailed, tailed.decoder.write(bytes.subarray(0, read)));
      }
    } finally {
      fs.closeSync(handle);
    }
  }

  #take(tailed: Tailed, text: string): void {
    const lines = (tailed.partial + text).split('\n');
    tailed.partial = lines.pop() ?? '';
    for (const line of lines) this.#write(`${tailed.prefix} ${lastState(line)}\n`);
  }
}

/** A progress bar rewrites its line with CR: its last state is what a terminal would show. */
function lastState(line: string): string {
  const states = line.replace(/\r+$/, '').split('\r');
  return states.at(-1) ?? '';
}

function openIfThere(file: string): number | undefined {
  try {
    return fs.openSync(file, 'r');
  } catch {
    return undefined;
  }
}
