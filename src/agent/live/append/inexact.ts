/**
 * Undecodable bytes without access to raw bytes: what they are is not to be had, but how many there are is, so that the
 * mirror does not drift. Asked from further and further on, the service at last answers with what follows them.
 */

import { goesOnLike } from '../compare/alike.ts';
import { isStillShown } from '../compare/still-shown.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import type { Follow, FollowEnd } from '../steps.ts';
import { findMark } from '../text/byte-order-mark.ts';
import { type Decode, readMarked } from '../text/explain.ts';
import type { Reading } from '../text/reading.ts';

/** Questions for one stretch; each halves it at least, but for the longest ones. */
const MOST_PROBES = 24;
/** Marks of UTF-16 in a row. */
const MOST_MARKS = 8;
/** Bytes of an answer into which no block edge falls (docs/servers.md 1.2). */
const UNCUT_BYTES = 1020;

/**
 * Fills the mirror where `text`, which stands at its end, is uncertain. A reading that stands behind what was filled,
 * or the end of the poll: the stretch may still end in a character that is not complete, or the file changed. A block
 * edge may have cut a character where `text` stands (`mayBeCut`).
 */
export async function* fillInexact(
  file: LiveFile,
  text: Reading,
  context: { readonly decode: Decode; readonly mayBeCut: boolean },
): Follow<Reading | FollowEnd> {
  const { decode } = context;
  const measured = yield* measure(file, text, context);
  if (typeof measured === 'string') return measured;
  const { width, next } = measured;
  if (typeof next === 'string' && width === 0) return next;
  if (!(yield* isStillShown(file, text, decode))) return 'unclear';
  if (width > 0) await file.appendInexact(width);
  return next;
}

interface Measured {
  /** Bytes that are undecodable for sure. */
  readonly width: number;
  readonly next: Reading | FollowEnd;
}

async function* measure(
  file: LiveFile,
  text: Reading,
  { decode, mayBeCut }: { readonly decode: Decode; readonly mayBeCut: boolean },
): Follow<Measured | FollowEnd> {
  let behind = text;
  let width = 0;
  let misses = 0;
  for (let probes = 0; probes < MOST_PROBES; probes++) {
    const part = yield file.length + width;
    if (part === undefined) return 'absent';
    const reading = decode(part.content);
    let onward = await goesOnLike(reading, behind, { mayBeCut: mayBeCut && behind === text });
    if (onward === undefined || (await reading.peek(1)).length > 0) {
      // What is undecodable may be taken for a mark, too, and then the text is no longer that of UTF-8.
      const { mark } = yield* findMark(part.content, file.length + width, Buffer.alloc(0));
      if (mark === 'again') onward = undefined;
      else if (mark !== 'none') return { width, next: readMarked(part.content, mark) };
    }
    if (onward === undefined) {
      // Only a mark explains what begins with a character, or ends within one, and is shown nowhere else; its bytes are
      // undecodable for sure.
      const rest = reading.fork();
      const isMark = (await reading.peek(1)).length > 0 || ((await rest.skipUncertain()) > 0 && rest.atEnd());
      if (!isMark || ++misses > MOST_MARKS) return 'unclear';
      width++;
      continue;
    }
    misses = 0;
    const rest = reading.fork();
    const replaced = onward === 'unmarked' ? 0 : await rest.skipUncertain();
    // A character that a block edge had cut stands whole here.
    if (replaced === 0 && onward === 'earlier') return { width, next: reading };
    if (replaced === 0) return { width, next: width > 0 ? behind : 'unclear' };
    // Each stands for one byte at least; the last one perhaps for a character that is not complete yet.
    const sure = rest.atEnd() ? replaced - 1 : replaced;
    if (sure === 0) return { width, next: 'tail' };
    width += Math.min(sure, UNCUT_BYTES);
    behind = rest;
  }
  return { width, next: 'raw' };
}
