/** Byte-order marks that a service may take out of a text, and what they then make of it (docs/servers.md 1.2). */
import { BYTE_ORDER_MARK, startsAlike } from '../../../bytes.ts';
import type { Content } from '../../ports.ts';
import { Utf16 } from './encoders.ts';

/** A mark that was swallowed. */
export interface Mark {
  readonly bytes: Buffer;
  /** What makes bytes of the text behind it; without one, these are those of UTF-8. */
  readonly encoder?: Utf16;
}

export const MARKS: readonly Mark[] = [
  { bytes: BYTE_ORDER_MARK },
  { bytes: Buffer.from([0xff, 0xfe]), encoder: new Utf16({ bigEndian: false }) },
  { bytes: Buffer.from([0xfe, 0xff]), encoder: new Utf16({ bigEndian: true }) },
];

/** Whether bytes of which only the first ones are known may begin with a mark. */
export function mayBeMark(known: Buffer): boolean {
  return MARKS.some(({ bytes }) => startsAlike(bytes, known));
}

/** A text with the byte-order mark that the service swallowed. */
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

  /** The text itself is given back by whoever received it. */
  async release(): Promise<void> {}
}
