/**
 * Whether two readings of one file, asked from different offsets, go on alike. A character that a block edge cuts in one
 * of them stands whole in the other; of bytes that are none of UTF-8, neither says more than that they are there.
 */
import { BYTE_ORDER_MARK, commonLength, standsAt, widthOfLead } from '../../../bytes.ts';
import type { Reading } from '../text/reading.ts';

const STEP_BYTES = 64 * 1024;
/** What makes it unlikely that two readings go on alike by chance; and the least, where undecodable bytes follow. */
const RESUME_BYTES = 64;
const FEWEST_BYTES = 4;
/** What is left of a character on both sides of a block edge is shown as one U+FFFD at least on each. */
const FEWEST_OF_A_CUT = 2;

/**
 * Where two readings that were moved along came to: `enough` bytes; a text that is at its end (`left`, `right`, `both`);
 * where neither is certain (`uncertain`); or where they differ.
 */
interface Agreement {
  readonly end: 'enough' | 'left' | 'right' | 'both' | 'uncertain' | 'different';
  /** Certain bytes that both have. */
  readonly bytes: number;
}

/** Moves both along as far as they agree, for `enoughBytes` at most. */
export async function agree(left: Reading, right: Reading, enoughBytes: number): Promise<Agreement> {
  let bytes = 0;
  while (bytes < enoughBytes) {
    if (left.atEnd()) return { end: right.atEnd() ? 'both' : 'left', bytes };
    if (right.atEnd()) return { end: 'right', bytes };
    const step = Math.min(STEP_BYTES, enoughBytes - bytes);
    const [a, b] = [await left.peek(step), await right.peek(step)];
    if (a.length === 0 && b.length === 0) return { end: 'uncertain', bytes };
    const common = commonLength(a, b);
    left.advance(common);
    right.advance(common);
    bytes += common;
    if (common > 0) continue;
    const [whole, found] = a.length === 0 ? [right, b] : [left, a];
    const width = Math.min(found.length, widthOfLead(found[0] ?? 0));
    const cut = (await left.skipUncertain()) + (await right.skipUncertain());
    if (cut < FEWEST_OF_A_CUT) return { end: 'different', bytes };
    whole.advance(width);
  }
  return { end: 'enough', bytes };
}

/**
 * How a later answer goes on like an earlier one, each behind the replacement characters at which it may stand; undefined
 * if it does not. alike: with the same bytes. earlier: with a character before them, which a block edge had cut.
 * unmarked: behind the byte-order mark of the other one, for it was asked for at the mark, and that was swallowed.
 */
export async function goesOnLike(
  later: Reading,
  earlier: Reading,
): Promise<'alike' | 'earlier' | 'unmarked' | undefined> {
  const [ours, theirs] = [later.fork(), earlier.fork()];
  await ours.skipUncertain();
  await theirs.skipUncertain();
  if (await resumes(ours, theirs)) return 'alike';
  if (standsAt(await theirs.peek(BYTE_ORDER_MARK.length), 0, BYTE_ORDER_MARK)) {
    const unmarked = theirs.fork();
    unmarked.advance(BYTE_ORDER_MARK.length);
    // Where undecodable bytes follow the mark, there are as many behind the one that was swallowed.
    const asMany = (await later.fork().skipUncertain()) === (await unmarked.fork().skipUncertain());
    if (asMany && (await resumes(later, unmarked))) return 'unmarked';
  }
  const width = widthOfLead((await ours.peek(1))[0] ?? 0);
  if (width === 1 || (await ours.peek(width)).length < width) return undefined;
  ours.advance(width);
  return (await resumes(ours, theirs)) ? 'earlier' : undefined;
}

/** Whether the later answer goes on like the earlier one for a while; it does not end before. */
async function resumes(later: Reading, earlier: Reading): Promise<boolean> {
  const [ours, theirs] = [later.fork(), earlier.fork()];
  for (let agreed = 0; ; ) {
    const { end, bytes } = await agree(ours, theirs, RESUME_BYTES - agreed);
    agreed += bytes;
    // A text that ends in undecodable bytes says nothing of what came behind them since.
    if (end === 'right') return agreed > 0;
    if (end !== 'uncertain') return end === 'enough' || end === 'both';
    if (agreed >= FEWEST_BYTES) return true;
    await ours.skipUncertain();
    await theirs.skipUncertain();
  }
}

/** Whether two readings, each behind the replacement characters at which it may stand, go on alike to their end. */
export async function endTogether(left: Reading, right: Reading): Promise<boolean> {
  for (;;) {
    await left.skipUncertain();
    await right.skipUncertain();
    const { end } = await agree(left, right, Number.POSITIVE_INFINITY);
    if (end !== 'uncertain') return end === 'both';
  }
}
