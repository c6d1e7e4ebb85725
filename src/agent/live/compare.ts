/** Compares the certain bytes of an answer with the mirror, byte by byte. */
import { commonLength } from '../../bytes.ts';
import type { LiveBytes } from '../ports/server.ts';
import type { LiveFile } from './mirror/live-file.ts';

/**
 * same: the answer shows all of the mirror, and its cursor is at the end of the mirror. hidden: it shows the mirror up to
 * `at` only. shorter: the file ends at `at`. different: the byte at `at` is another one.
 */
export type Match =
  | { readonly kind: 'same' | 'hidden' | 'shorter'; readonly at: number }
  | {
      readonly kind: 'different';
      readonly at: number;
      /** Both have an ASCII character there: it means the same in each way to decode. */
      readonly isByAscii: boolean;
    };

const STEP_BYTES = 64 * 1024;

export async function compare(answer: LiveBytes, file: LiveFile): Promise<Match> {
  let at = answer.from;
  // What shows nothing of a mirror proves nothing about it.
  if (at === file.length && at > 0) return { kind: 'hidden', at };
  while (at < file.length) {
    const bytes = await answer.next(Math.min(STEP_BYTES, file.length - at));
    if (bytes.length === 0) return { kind: (await answer.rest()) === 'end' ? 'shorter' : 'hidden', at };
    const there = await file.read(at, at + bytes.length);
    const common = commonLength(bytes, there);
    at += common;
    if (common < bytes.length) {
      const isByAscii = [bytes, there].every((each) => (each[common] ?? 0x80) < 0x80);
      return { kind: 'different', at, isByAscii };
    }
  }
  return { kind: 'same', at };
}
