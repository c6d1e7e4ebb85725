/** A log as jobs write it, in many languages, and what the service makes of it (docs/servers.md 1.2). */

import { escapeText } from '../../src/sandbox/soap/answer.ts';
import { decodeBytes } from '../../test/support/decode-bytes.ts';
import { type Answer, around, LOG_BLOCK_BYTES, TASK_ID } from './answers.ts';

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
  /** By where in a block it begins. */
  readonly #texts = new Map<number, Buffer>();

  answer(bytes: number, offset: number): Answer {
    const left = Math.max(0, bytes - offset);
    const start = offset % LOG_BLOCK_BYTES;
    const rotated = () => Buffer.concat([this.#block.subarray(start), this.#block.subarray(0, start)]);
    const text = this.#texts.get(start) ?? textOf(rotated());
    this.#texts.set(start, text);
    const times = Math.floor(left / LOG_BLOCK_BYTES);
    const rest = textOf(rotated().subarray(0, left % LOG_BLOCK_BYTES));
    const names = ['DownloadPartsOfJobFilesFromClusterResult', 'JobFileContentExt'];
    const { before, after } = around('DownloadPartsOfJobFilesFromCluster', ...names);
    const fields = `<relativePath>${LOG_PATH}</relativePath><offset>${offset}</offset><fileType>StandardOutputFile</fileType><submittedTaskInfoId>${TASK_ID}</submittedTaskInfoId>`;
    return {
      before: Buffer.from(`${before}<content>`),
      block: text,
      times,
      after: Buffer.concat([rest, Buffer.from(`</content>${fields}${after}`)]),
    };
  }
}

/** The log as a listed file: its raw bytes. Three blocks of it are base64 without padding. */
export function rawLogAnswer(bytes: number): Answer {
  const block = logBlock();
  const times = Math.floor(bytes / (3 * LOG_BLOCK_BYTES));
  const rest = Buffer.concat([block, block, block]).subarray(0, bytes - times * 3 * LOG_BLOCK_BYTES);
  const { before, after } = around('DownloadFileFromCluster', 'DownloadFileFromClusterResult');
  return {
    before: Buffer.from(before),
    block: Buffer.from(Buffer.concat([block, block, block]).toString('base64')),
    times,
    after: Buffer.from(rest.toString('base64') + after),
  };
}

const textOf = (bytes: Buffer) => Buffer.from(escapeText(decodeBytes(bytes, 0)));
