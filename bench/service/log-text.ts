/** A log as jobs write it, in many languages, and what the service makes of it (docs/dev/servers.md 1.2). */

import { decodeBytes } from '../../test/support/model-remote.ts';
import { type Answer, LOG_BLOCK_BYTES } from './answers.ts';
import { type Protocol, WRITING } from './protocols.ts';

const SENTENCES = [
  'Příliš žluťoučký kůň úpěl ďábelské ódy nad hladinou řeky',
  'Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, γράφει η ουρά των εργασιών',
  'いろはにほへと散りぬるを 計算ノードは静かに動いている',
  'نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر',
  'Съешь ещё этих мягких французских булок, да выпей чаю',
  'Fix, Schwyz! quäkt Jürgen blöd vom Paß, während der Löser rechnet',
  'solver ✓ converged 🚀 after 👩🏽‍🔬 looked at 🌡️ and 📈',
  'residual below tolerance, writing checkpoint to /scratch/run/checkpoint.h5',
  'if (x < 10 && y > 3) then mesh "refined" <ok>',
];
const LEVELS = ['INFO ', 'DEBUG', 'WARN ', '\u001b[1;31mERROR\u001b[0m'];

/** The path that the service gives with the text, and by which it lists the file. */
export const LOG_PATH = '/stdout.txt';

/** One block of the log: whole lines, LOG_BLOCK_BYTES of them. The same at every call. */
export function logBlock(): Buffer {
  const lines: string[] = [];
  let bytes = 0;
  for (let step = 0; ; step += 1) {
    const mixed = Math.imul(step ^ (step >>> 3), 0x9e3779b1) >>> 0;
    const level = LEVELS[mixed % 16 === 0 ? 3 : mixed % 3];
    const time = new Date(1_760_000_000_000 + step * 137).toISOString();
    const line = `${time} ${level} [rank ${mixed % 128}] step ${step}: ${SENTENCES[(mixed >>> 8) % SENTENCES.length]} ${(1 / (step + 1)).toExponential(6)}\n`;
    const length = Buffer.byteLength(line);
    if (bytes + length > LOG_BLOCK_BYTES - 1) break;
    lines.push(line);
    bytes += length;
  }
  return Buffer.from(`${lines.join('')}${'-'.repeat(LOG_BLOCK_BYTES - bytes - 1)}\n`);
}

/** What the service makes of a log of so many bytes, asked from `offset` on. */
export class LogAnswers {
  readonly #block = logBlock();
  readonly #protocol: Protocol;
  /** By where in a block it begins. */
  readonly #texts = new Map<number, Buffer>();

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  answer(bytes: number, offset: number): Answer {
    const left = Math.max(0, bytes - offset);
    const start = offset % LOG_BLOCK_BYTES;
    const rotated = () => Buffer.concat([this.#block.subarray(start), this.#block.subarray(0, start)]);
    const text = this.#texts.get(start) ?? this.#textOf(rotated());
    this.#texts.set(start, text);
    const { before, after } = WRITING[this.#protocol].part({ path: LOG_PATH, offset });
    return {
      before: Buffer.from(before),
      block: text,
      times: Math.floor(left / LOG_BLOCK_BYTES),
      after: Buffer.concat([this.#textOf(rotated().subarray(0, left % LOG_BLOCK_BYTES)), Buffer.from(after)]),
    };
  }

  #textOf(bytes: Buffer): Buffer {
    return Buffer.from(WRITING[this.#protocol].escaped(decodeBytes(bytes, 0)));
  }
}

/** The log as a listed file: its raw bytes. Three blocks of it are base64 without padding. */
export function rawLogAnswer(bytes: number, protocol: Protocol): Answer {
  const block = logBlock();
  const times = Math.floor(bytes / (3 * LOG_BLOCK_BYTES));
  const rest = Buffer.concat([block, block, block]).subarray(0, bytes - times * 3 * LOG_BLOCK_BYTES);
  const { before, after } = WRITING[protocol].file;
  return {
    before: Buffer.from(before),
    block: Buffer.from(Buffer.concat([block, block, block]).toString('base64')),
    times,
    after: Buffer.from(rest.toString('base64') + after),
  };
}
