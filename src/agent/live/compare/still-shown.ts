/**
 * Answers of one poll may be of two contents of a file. What several of them say together counts only if the service
 * still shows, behind them, what it showed before.
 */
import type { Follow } from '../../ports.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { askFrom } from '../offsets.ts';
import type { Decode } from '../text/explain.ts';
import type { Reading } from '../text/reading.ts';
import { agree } from './alike.ts';
import { match } from './match.ts';

/** Text behind the mirror that is compared. */
const COMPARED_BYTES = 64 * 1024;

/**
 * Whether the service still shows what is mirrored, and behind it `text`, which stands where the mirror ends, or behind
 * replacement characters that the mirror ends in; it may have grown since, where it does not end in such.
 */
export async function* isStillShown(file: LiveFile, text: Reading, decode: Decode): Follow<boolean> {
  const from = await askFrom(file);
  const part = yield from;
  if (part === undefined) return false;
  const later = decode(part.content);
  const found = await match(later, file, { from, to: file.length });
  if (found.kind !== 'same') return false;
  const earlier = text.fork();
  // How many of those that the mirror ends in stand behind it, only the earlier answers said.
  if (!found.aligned) await earlier.skipUncertain();
  let isBehindUncertain = !found.aligned;
  for (let left = COMPARED_BYTES; ; ) {
    const { end, bytes } = await agree(later, earlier, left);
    left -= bytes;
    if (end === 'right') return bytes > 0 || !isBehindUncertain;
    if (end !== 'uncertain') return end === 'both' || end === 'enough';
    const [ours, theirs] = [await later.skipUncertain(), await earlier.skipUncertain()];
    if (earlier.atEnd() && ours !== theirs) return false;
    isBehindUncertain = true;
  }
}
