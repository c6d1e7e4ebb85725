/** Whether a file is text, by its beginning. */
import { decode } from './terminal.ts';

/** So many bytes are looked at. */
export const BEGINNING_BYTES = 4 * 1024;
/** A text in an older encoding has fewer bytes that are none of UTF-8. */
const MAX_WRONG_SHARE = 0.3;

/** Whether bytes at the beginning of a file are those of no text: as git has it, or mostly none of UTF-8. */
export function isBinary(beginning: Uint8Array): boolean {
  if (beginning.includes(0)) return true;
  const wrong = decode(beginning).split('\ufffd').length - 1;
  return wrong > MAX_WRONG_SHARE * beginning.length;
}
