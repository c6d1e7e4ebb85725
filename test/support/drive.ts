/** Answers the questions of a recipe from bytes in memory, by the real decoding. */
import type { Content, Follow, Part } from '../../src/agent/ports.ts';
import { type DecodeBytesOptions, decodeBytes } from './decode-bytes.ts';
import { STDOUT } from './engine.ts';
import { MemoryContent } from './memory-content.ts';

/** The text of `bytes` from `offset` on. */
export function textOf(bytes: Buffer, offset: number, decoding: DecodeBytesOptions = {}): Content {
  return new MemoryContent(Buffer.from(decodeBytes(bytes, offset, decoding)));
}

/** Runs a recipe to its end; the offsets it asked for are added to `asked`. `file` may be another one at each call. */
export async function drive<End>(
  recipe: Follow<End>,
  file: Buffer | ((call: number) => Buffer),
  decoding: DecodeBytesOptions = {},
  asked: number[] = [],
): Promise<End> {
  let part: Part | undefined;
  for (;;) {
    const step = await recipe.next(part);
    if (step.done) return step.value;
    const bytes = typeof file === 'function' ? file(asked.length) : file;
    asked.push(step.value);
    part = { ...STDOUT, offset: step.value, relativePath: null, content: textOf(bytes, step.value, decoding) };
  }
}
