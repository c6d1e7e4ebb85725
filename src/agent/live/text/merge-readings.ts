/**
 * Two readings of one file, asked from offsets half a block apart. The service decodes independent blocks counted from
 * the offset asked for (docs/servers.md 1.2), so a character that a block edge cuts in one reading is whole in the
 * other: together they are certain over all of the text, for twice its bytes, however many characters were cut.
 */
import { commonLength, REPLACEMENT, standsAt, widthOfLead } from '../../../bytes.ts';
import type { TextWindow, Utf8Reading } from './reading.ts';

/** Text beyond the end of what is merged of a window: a cut character, and what follows it. */
const SIGHT_BYTES = 64;

/**
 * The certain bytes of both, in order; both stand at the same position of the file at first. Ends where one of them
 * ends, where neither is certain, or where the two contradict each other (the file was rewritten in between). What it
 * hands out holds until the bytes after the next ones are asked for.
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
    // Both are in the midst of what is in sight, or one of them ends there: no other window would help.
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

  /** Where the certain bytes end that stand at `index`, which is not before those asked for last. */
  certainEnd(index: number): number {
    if (this.#certainEnd < index) {
      const found = this.bytes.indexOf(REPLACEMENT, index);
      // The last two bytes may be the beginning of a U+FFFD that the window cuts.
      this.#certainEnd = found >= 0 ? found : this.whole ? this.bytes.length : this.bytes.length - 2;
    }
    return this.#certainEnd;
  }

  /** Behind the replacement characters that stand here. */
  behindReplaced(): number {
    let index = this.at;
    while (standsAt(this.bytes, index, REPLACEMENT)) index += REPLACEMENT.length;
    return index;
  }
}

/** Moves both sides as far as they are certain together, and says how many bytes that are. */
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

/** In how many bytes from where they stand two sides agree, at most `run`. */
function agreement(left: Side, right: Side, run: number): number {
  const [a, b] = [left.at, right.at];
  if (left.bytes.compare(right.bytes, b, b + run, a, a + run) === 0) return run;
  return commonLength(left.bytes.subarray(a, a + run), right.bytes.subarray(b, b + run));
}

/**
 * The bytes of the first character of `other` if it is the one that `cut` has replaced: if behind it, both go on alike.
 * Else, or if nothing follows that could show it, 0.
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
