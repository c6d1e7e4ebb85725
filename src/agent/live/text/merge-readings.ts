/**
 * Merges two readings of one file, requested half a block apart. The server decodes independent blocks counted from the
 * requested offset (docs/servers.md 1.2), so a character that a block edge cuts in one reading is whole in the other.
 * Together they are certain over all of the text, for twice its bytes.
 */
import { commonLength, REPLACEMENT, standsAt, widthOfLead } from '../../../bytes.ts';
import type { TextWindow, Utf8Reading } from './reading.ts';

/** Bytes at the end of a window that are not merged: room for a cut character and the text after it. */
const SIGHT_BYTES = 64;

/**
 * Yields the certain bytes of both, in order; both start at the same position of the file. Ends where one of them ends,
 * where neither is certain, or where they contradict each other (the file was rewritten in between). A buffer is valid
 * until the second request after it.
 */
export async function* merge(left: Utf8Reading, right: Utf8Reading): AsyncGenerator<Buffer, void> {
  let [next, last] = [Buffer.alloc(0), Buffer.alloc(0)];
  for (;;) {
    const [ours, theirs] = await Promise.all([left.window(), right.window()]);
    const [a, b] = [new Side(ours), new Side(theirs)];
    // A U+FFFD, three bytes of text, may have replaced a character of four.
    const most = Math.ceil((Math.min(a.bytes.length, b.bytes.length) * 4) / 3);
    if (next.length < most) next = Buffer.allocUnsafeSlow(most);
    const length = mergeInto(next, a, b);
    left.advance(a.at);
    right.advance(b.at);
    if (length > 0) yield next.subarray(0, length);
    [next, last] = [last, next];
    // Both stopped inside their windows, or one of them ended: another window does not help.
    if ((a.at < a.limit && b.at < b.limit) || left.atEnd() || right.atEnd()) return;
  }
}

/** One of two windows, and how far it was merged. */
class Side {
  readonly bytes: Buffer;
  readonly whole: boolean;
  readonly limit: number;
  at = 0;
  #certainEnd = -1;

  constructor({ bytes, whole }: TextWindow) {
    this.bytes = bytes;
    this.whole = whole;
    this.limit = whole ? bytes.length : bytes.length - SIGHT_BYTES;
  }

  /** End of the certain bytes from `index` on; `index` never decreases. */
  certainEnd(index: number): number {
    if (this.#certainEnd < index) {
      const found = this.bytes.indexOf(REPLACEMENT, index);
      // The last two bytes may be the beginning of a U+FFFD that the window cuts.
      this.#certainEnd = found >= 0 ? found : this.whole ? this.bytes.length : this.bytes.length - 2;
    }
    return this.#certainEnd;
  }

  /** The position after the replacement characters at the cursor. */
  behindReplaced(): number {
    let index = this.at;
    while (standsAt(this.bytes, index, REPLACEMENT)) index += REPLACEMENT.length;
    return index;
  }
}

/** Moves both sides as far as they are certain together; returns the number of bytes. */
function mergeInto(out: Buffer, left: Side, right: Side): number {
  let length = 0;
  while (left.at < left.limit && right.at < right.limit) {
    const ofLeft = Math.min(left.certainEnd(left.at), left.limit) - left.at;
    const ofRight = Math.min(right.certainEnd(right.at), right.limit) - right.at;
    const run = Math.min(ofLeft, ofRight);
    if (run > 0) {
      const common = agreement(left, right, run);
      left.bytes.copy(out, length, left.at, left.at + common);
      length += common;
      left.at += common;
      right.at += common;
      if (common < run) break;
      continue;
    }
    const [cut, other] = ofLeft === 0 ? [left, right] : [right, left];
    const width = widthOfCut(cut, other);
    if (width === 0) break;
    for (let index = 0; index < width; index++) out[length++] = other.bytes[other.at++] ?? 0;
    cut.at = cut.behindReplaced();
  }
  return length;
}

/** The number of equal bytes at both cursors, at most `run`. */
function agreement(left: Side, right: Side, run: number): number {
  const [a, b] = [left.at, right.at];
  if (left.bytes.compare(right.bytes, b, b + run, a, a + run) === 0) return run;
  return commonLength(left.bytes.subarray(a, a + run), right.bytes.subarray(b, b + run));
}

/**
 * The width of the first character of `other` if `cut` shows it as U+FFFD: both continue equally after it. 0 otherwise,
 * or if nothing follows that proves it.
 */
function widthOfCut(cut: Side, other: Side): number {
  const certain = other.certainEnd(other.at) - other.at;
  const width = widthOfLead(other.bytes[other.at] ?? 0);
  if (certain < width) return 0;
  const resumed = cut.behindReplaced();
  if (cut.whole && resumed === cut.bytes.length) return width;
  const follows = Math.min(cut.certainEnd(resumed) - resumed, certain - width, SIGHT_BYTES);
  const at = other.at + width;
  return follows > 0 && cut.bytes.compare(other.bytes, at, at + follows, resumed, resumed + follows) === 0 ? width : 0;
}
