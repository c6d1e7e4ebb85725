/**
 * Undecodable bytes without access to raw bytes: what they are is not to be had, but how many there are is, so that the
 * mirror does not drift. Asked from further and further on, the service at last answers with what follows them.
 */

import type { Follow } from '../../ports.ts';
import { goesOnLike } from '../compare/alike.ts';
import { mayShowSameBytes } from '../compare/same-bytes.ts';
import { isStillShown } from '../compare/still-shown.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import type { Answer, FollowEnd } from '../steps.ts';
import { findMark } from '../text/byte-order-mark.ts';
import { type Decode, readMarked } from '../text/explain.ts';

/** Questions for one stretch; each halves it at least, but for the longest ones. */
const MOST_PROBES = 24;
/** Marks of UTF-16 in a row. */
const MOST_MARKS = 8;
/** Bytes of an answer into which no block edge falls (docs/servers.md 1.2). */
const UNCUT_BYTES = 1020;

/**
 * Fills the mirror where `text`, which stands at its end, is uncertain. An answer that stands behind what was filled,
 * or the end of the poll: the stretch may still end in a character that is not complete, or the file changed.
 */
export async function* fillInexact(file: LiveFile, text: Answer, decode: Decode): Follow<Answer | FollowEnd> {
  const measured = yield* measure(file, text, decode);
  if (typeof measured === 'string') return measured;
  const { width, next } = measured;
  if (typeof next === 'string' && width === 0) return next;
  if (!(yield* isStillShown(file, text.reading, decode))) return 'unclear';
  if (width > 0) await file.appendInexact(width);
  return next;
}

interface Measured {
  /** Bytes that are undecodable for sure. */
  readonly width: number;
  readonly next: Answer | FollowEnd;
}

async function* measure(file: LiveFile, text: Answer, decode: Decode): Follow<Measured | FollowEnd> {
  let behind = text;
  let width = 0;
  let misses = 0;
  for (let probes = 0; probes < MOST_PROBES; probes++) {
    const offset = file.length + width;
    const part = yield offset;
    if (part === undefined) return 'absent';
    const reading = decode(part.content);
    const here = { offset, reading };
    let onward = await goesOnLike(reading, behind.reading);
    if (onward === undefined) {
      const earlier = { answer: behind, at: Math.max(file.length, behind.offset) };
      if (await mayShowSameBytes({ answer: here, at: offset }, earlier)) onward = 'earlier';
    }
    if (onward === undefined || (await reading.peek(1)).length > 0) {
      // What is undecodable may be taken for a mark, too, and then the text is no longer that of UTF-8.
      const { mark } = yield* findMark(part.content, offset, Buffer.alloc(0));
      if (mark === 'again') onward = undefined;
      else if (mark !== 'none') return { width, next: { offset, reading: readMarked(part.content, mark) } };
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
    // What a block edge had cut stands whole here.
    if (replaced === 0 && onward === 'earlier') return { width, next: here };
    if (replaced === 0) return { width, next: width > 0 ? await behindReplaced(behind) : 'unclear' };
    // Each stands for one byte at least; the last one perhaps for a character that is not complete yet.
    const sure = rest.atEnd() ? replaced - 1 : replaced;
    if (sure === 0) return { width, next: 'tail' };
    width += Math.min(sure, UNCUT_BYTES);
    behind = here;
  }
  return { width, next: 'raw' };
}

/** The same answer, behind the replacement characters at which it stands. */
async function behindReplaced({ offset, reading }: Answer): Promise<Answer> {
  const behind = reading.fork();
  await behind.skipUncertain();
  return { offset, reading: behind };
}
