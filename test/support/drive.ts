/** Answers requests from bytes in memory, by the real decoding. */
import type { Content, FileParts } from '../../src/agent/ports/server.ts';
import { type DecodeBytesOptions, decodeBytes } from './decode-bytes.ts';
import { STDOUT } from './engine.ts';
import { MemoryContent } from './memory-content.ts';

/** The text of `bytes` from `offset` on. */
export function textOf(bytes: Buffer, offset: number, decoding: DecodeBytesOptions = {}): Content {
  return new MemoryContent(Buffer.from(decodeBytes(bytes, offset, decoding)));
}

/** The parts of a file in memory; adds requested offsets to `asked`. `file` may change between calls. */
export function partsOf(
  file: Buffer | ((call: number) => Buffer),
  decoding: DecodeBytesOptions = {},
  asked: number[] = [],
): FileParts {
  return {
    waitForCommit: async () => {},
    async at(offset) {
      const bytes = typeof file === 'function' ? file(asked.length) : file;
      asked.push(offset);
      return { ...STDOUT, offset, relativePath: null, content: textOf(bytes, offset, decoding) };
    },
  };
}
