/** Byte-order marks that a server may strip from a text, and how it then decodes the rest (docs/servers.md 1.4). */
import { BYTE_ORDER_MARK, startsAlike } from '../../../bytes.ts';
import type { Content } from '../../ports.ts';
import { Utf16 } from './encoders.ts';

/** A byte-order mark that the server stripped. */
export interface Mark {
  readonly bytes: Buffer;
  /** Encodes the text after it; undefined for UTF-8. */
  readonly encoder?: Utf16;
}

export const MARKS: readonly Mark[] = [
  { bytes: BYTE_ORDER_MARK },
  { bytes: Buffer.from([0xff, 0xfe]), encoder: new Utf16({ bigEndian: false }) },
  { bytes: Buffer.from([0xfe, 0xff]), encoder: new Utf16({ bigEndian: true }) },
];

/** Whether bytes that start with `known` may start with a mark. */
export function mayBeMark(known: Buffer): boolean {
  return MARKS.some(({ bytes }) => startsAlike(bytes, known));
}

/** A text with the byte-order mark that the server stripped. */
export class Marked implements Content {
  readonly length: number;
  readonly #content: Content;

  constructor(content: Content) {
    this.#content = content;
    this.length = BYTE_ORDER_MARK.length + content.length;
  }

  async read(start: number, end: number, space?: Buffer): Promise<Buffer> {
    const mark = BYTE_ORDER_MARK.subarray(start, end);
    const width = BYTE_ORDER_MARK.length;
    const rest = await this.#content.read(Math.max(0, start - width), Math.max(0, end - width), space);
    return mark.length === 0 ? rest : Buffer.concat([mark, rest]);
  }

  /** The caller that received the text releases it. */
  async release(): Promise<void> {}
}
