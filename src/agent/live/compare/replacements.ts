/** What a service shows in place of bytes that it cannot decode. */
import { isUtf8 } from 'node:buffer';
import { REPLACEMENT, widthOfLead } from '../../../bytes.ts';
import { UNKNOWN } from '../mirror/inexact-regions.ts';

/** A replacement character stands for one to three bytes (docs/servers.md 1.2). */
export const MOST_BYTES_A_REPLACEMENT = 3;

/**
 * With how many U+FFFD at least a service shows bytes that it does not decode (docs/servers.md 1.2): one for each
 * beginning of a character, and two for a whole one, for that can only have been cut by a block edge, of which there is
 * none in the first `uncutBytes`. What the bytes end in may go on.
 */
export function fewestReplacements(bytes: Buffer, uncutBytes = 0): number {
  let count = 0;
  for (let at = 0; at < bytes.length; ) {
    const width = bytes[at] === UNKNOWN ? MOST_BYTES_A_REPLACEMENT : widthOfLead(bytes[at] ?? 0);
    const start = at++;
    while (at < start + width && (bytes[at] === UNKNOWN || isContinuation(bytes[at]))) at++;
    if (at - start === width && isShown(bytes.subarray(start, at)))
      count += at > uncutBytes ? 2 : Number.POSITIVE_INFINITY;
    else if (at - start === width) count += 1;
    else if (at < bytes.length) count += 1;
  }
  return count;
}

/** Whether it is a character that stands in the text unless it is cut. */
function isShown(bytes: Buffer): boolean {
  return bytes.length > 1 && isUtf8(bytes) && !isNoCharacter(bytes);
}

/** U+FFFD itself, and U+FFFE and U+FFFF, which no XML can hold. */
function isNoCharacter(bytes: Buffer): boolean {
  return bytes.length === REPLACEMENT.length && bytes[0] === 0xef && bytes[1] === 0xbf && (bytes[2] ?? 0) >= 0xbd;
}

const isContinuation = (byte = 0) => (byte & 0xc0) === 0x80;

/** With how many U+FFFD at most a service shows bytes that no block edge cuts: one for each byte that is of no character. */
export function mostReplacements(bytes: Buffer): number {
  const whole = [...bytes.toString().replaceAll('\ufffd', '')].join('');
  const genuine = bytes.toString('latin1').split(REPLACEMENT.toString('latin1')).length - 1;
  return bytes.length - Buffer.byteLength(whole) - genuine * (REPLACEMENT.length - 1);
}
