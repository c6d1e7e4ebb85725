/**
 * How the service turns the bytes of a live file into text (docs/dev/servers.md 1.2): independent blocks of 1,024 bytes,
 * counted from the offset asked for; or one decoder from there to the end; or otherwise, as one character a byte.
 */
import { TextDecoder } from 'node:util';

export interface DecodingOptions {
  /** A server that decodes otherwise: one character a byte (ISO-8859-1). Default false: UTF-8. */
  readonly latin1?: boolean;
  /** Undecodable bytes become as many U+FFFD as on the .NET Framework and Mono. Default false: as on .NET 8 to 10. */
  readonly olderRuntime?: boolean;
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
  const decodeBlock = blockDecoder(options);
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

function blockDecoder({ latin1, olderRuntime }: DecodingOptions): BlockDecoder {
  if (latin1) return (bytes, start, end) => bytes.toString('latin1', start, end);
  // Node's toString is the decoder of the WHATWG standard that keeps byte-order marks, as .NET's UTF8Encoding does.
  if (!olderRuntime) return (bytes, start, end) => bytes.toString('utf8', start, end);
  return (bytes, start, end) => asInOlderRuntime(bytes.subarray(start, end)).toString('utf8');
}

/** Lead bytes that allow only some continuation bytes behind them, and which. */
const SECOND_BYTES: Readonly<Record<number, readonly [number, number]>> = {
  224: [0xa0, 0xbf],
  237: [0x80, 0x9f],
  240: [0x90, 0xbf],
  244: [0x80, 0x8f],
};

/** The older runtime makes one U+FFFD of such a lead byte with another continuation byte, and not two. */
function asInOlderRuntime(bytes: Buffer): Buffer {
  const kept: number[] = [];
  for (let at = 0; at < bytes.length; at++) {
    const [lead = 0, second = 0] = bytes.subarray(at, at + 2);
    const [low, high] = SECOND_BYTES[lead] ?? [0x80, 0xbf];
    const isOne = (second & 0xc0) === 0x80 && (second < low || second > high);
    kept.push(isOne ? 0xff : lead);
    if (isOne) at++;
  }
  return Buffer.from(kept);
}
