/**
 * How the service turns the bytes of a live file into text (docs/servers.md 1.2): independent blocks of 1,024 bytes,
 * counted from the offset asked for; or one decoder from there to the end; or one character a byte.
 */
import { TextDecoder } from 'node:util';
import iconv from 'iconv-lite';

/** The name of a single-byte encoding. */
export type CodePage = `windows-${number}` | `iso-8859-${number}` | `cp${number}`;

export interface DecodingOptions {
  /** One character a byte, by this code page; UTF-8 when left out. */
  readonly codePage?: CodePage | undefined;
  /**
   * One decoder from the offset to the end: no block edges cut a character, but a byte-order mark at the offset
   * vanishes, and that of UTF-16 makes UTF-16 of all that follows. Default false: blocks.
   */
  readonly stream?: boolean;
  /** A byte-order mark at the very beginning vanishes. Default false. */
  readonly swallowBom?: boolean;
}

export const BLOCK_BYTES = 1024;

/**
 * The text of a file that arrives in reads, one piece of text a read. Each read is cut into blocks anew, so a short
 * read makes a shorter block. A read is used up before the next one is asked for: its buffer may be used again.
 */
export async function* decodeBlocks(
  reads: AsyncIterable<Buffer> | Iterable<Buffer>,
  options: DecodingOptions = {},
): AsyncGenerator<string> {
  const decoder = readDecoder(options);
  for await (const read of reads) yield decoder.decode(read);
  yield decoder.end();
}

interface ReadDecoder {
  decode(read: Buffer): string;
  /** What is left when nothing follows. */
  end(): string;
}

/** For one file from an offset on. */
export function readDecoder(options: DecodingOptions): ReadDecoder {
  if (options.stream) return streamDecoder();
  const decodeBlock = blockDecoder(options.codePage);
  let atStart = options.swallowBom === true;
  const decode = (read: Buffer) => {
    let start = 0;
    if (atStart && read.length > 0) {
      atStart = false;
      // The mark stands in the first block or not at all; that block still ends where it would have ended.
      if (read[0] === 0xef && read[1] === 0xbb && read[2] === 0xbf) start = 3;
    }
    let text = '';
    for (let end = BLOCK_BYTES; start < read.length; end += BLOCK_BYTES) {
      text += decodeBlock(read, start, Math.min(end, read.length));
      start = end;
    }
    return text;
  };
  return { decode, end: () => '' };
}

/** Bytes that a byte-order mark has at most. */
const MAX_MARK_BYTES = 3;

/** One decoder to the end; which one is decided by the first bytes, as soon as there are enough. */
function streamDecoder(): ReadDecoder {
  let decoder: TextDecoder | undefined;
  let head = Buffer.alloc(0);
  const begin = () => {
    decoder = new TextDecoder(encodingOf(head));
    return decoder.decode(head, { stream: true });
  };
  return {
    decode(read) {
      if (decoder !== undefined) return decoder.decode(read, { stream: true });
      head = Buffer.concat([head, read]);
      return head.length < MAX_MARK_BYTES ? '' : begin();
    },
    end: () => (decoder === undefined ? begin() : '') + (decoder?.decode() ?? ''),
  };
}

function encodingOf(head: Buffer): string {
  if (head[0] === 0xff && head[1] === 0xfe) return 'utf-16le';
  if (head[0] === 0xfe && head[1] === 0xff) return 'utf-16be';
  return 'utf-8';
}

type BlockDecoder = (bytes: Buffer, start: number, end: number) => string;

function blockDecoder(codePage: CodePage | undefined): BlockDecoder {
  // Node's toString is the decoder of the WHATWG standard that keeps byte-order marks, as .NET's UTF8Encoding does.
  if (codePage === undefined) return (bytes, start, end) => bytes.toString('utf8', start, end);
  const units = Uint16Array.from(charactersOf(codePage), (character) => character.charCodeAt(0));
  return (bytes, start, end) => {
    // Not character by character: a text of thousands of pieces is slow to read.
    const text = Buffer.allocUnsafe(2 * (end - start));
    for (let at = start; at < end; at++) text.writeUInt16LE(units[bytes[at] ?? 0] ?? 0, 2 * (at - start));
    return text.toString('utf16le');
  };
}

const tables = new Map<CodePage, readonly string[]>();

/** The 256 characters of a code page. As in .NET, an undefined byte is the C1 control of the same number. */
export function charactersOf(codePage: CodePage): readonly string[] {
  const known = tables.get(codePage) ?? tableOf(codePage);
  tables.set(codePage, known);
  return known;
}

function tableOf(codePage: CodePage): readonly string[] {
  return Array.from({ length: 256 }, (_, byte) => {
    const character = iconv.decode(Buffer.of(byte), codePage);
    return character === '\ufffd' ? String.fromCharCode(byte) : character;
  });
}
