/**
 * Undecodable bytes without access to raw bytes: what they are is not to be had, but how many there are is, so that the
 * mirror does not drift. Asked from further and further on, the service at last answers with what follows them.
 */

import { goesOnLike } from './compare.ts';
import type { TextEncoding } from './encoding.ts';
import type { Follow, FollowEnd } from './follow.ts';
import type { LiveFile } from './live-file.ts';
import type { Reading } from './reading.ts';

/** Questions for one stretch; each halves it at least, but for the longest ones. */
const MOST_PROBES = 24;
/** Bytes of an answer into which no block edge falls (field notes 1). */
const UNCUT_BYTES = 1020;

/**
 * Fills the mirror where `text`, which stands at its end, is uncertain. A reading that stands behind what was filled,
 * or the end of the poll: the stretch may still end in a character that is not complete, or the file changed.
 */
export async function* fillInexact(file: LiveFile, text: Reading, encoding: TextEncoding): Follow<Reading | FollowEnd> {
  let behind = text;
  let width = 0;
  for (let probes = 0; probes < MOST_PROBES; probes++) {
    const part = yield file.length + width;
    if (part === undefined) return 'absent';
    const reading = encoding.reading(part.content);
    const onward = await goesOnLike(reading, behind);
    if (onward === undefined) return 'witness';
    const rest = reading.fork();
    const replaced = onward === 'unmarked' ? 0 : await rest.skipUncertain();
    if (replaced === 0) {
      if (width > 0) await file.appendInexact(width);
      // A character that a block edge had cut stands whole here.
      if (onward === 'earlier') return reading;
      return width > 0 ? behind : 'witness';
    }
    // Each stands for one byte at least; the last one perhaps for a character that is not complete yet.
    const sure = rest.atEnd() ? replaced - 1 : replaced;
    if (sure === 0) {
      if (width > 0) await file.appendInexact(width);
      return 'tail';
    }
    width += Math.min(sure, UNCUT_BYTES);
    behind = rest;
  }
  await file.appendInexact(width);
  return 'raw';
}
