/**
 * One poll of one live file, as a recipe: ask from a little before the position, hold what comes back against the
 * mirror, append the rest.
 */
import { appendFar, appendRest } from './append/append.ts';
import { compare } from './compare/compare.ts';
import { type Difference, match } from './compare/match.ts';
import type { LiveFile } from './mirror/live-file.ts';
import { alignDown, askFrom } from './offsets.ts';
import type { Follow, FollowContext, FollowEnd } from './steps.ts';
import { type Decode, explain } from './text/explain.ts';

const MOST_ATTEMPTS = 4;

export async function* follow(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    const from = await askFrom(file);
    const part = yield from;
    if (part === undefined) return 'absent';
    if (!part.isBeginning) file.note({ relativePath: part.relativePath });

    // Find out how it is to be read, and hold it against what is there.
    const explained = yield* explain(from, part, file, context);
    if (explained === 'again') return 'witness';
    const { reading, second, decode, proven } = explained;
    const found = yield* compare(file, { offset: from, reading, second }, { decode, final: context.final });
    if (found === 'again') return 'witness';

    // A difference is mended, kept as a generation, or looked at twice.
    if (found.kind !== 'same') {
      if (yield* settleDifference(found, file, { ...context, decode })) continue;
      return 'witness';
    }
    context.witnesses.clear(file, 'difference');
    file.trust(found.unproven);
    if (file.row.inexact.length > 0) await context.rawBytes.mend(file, context);
    if (part.isBeginning) return yield* appendFar(file, found.answer, context);
    return yield* appendRest(file, found.answer, { ...context, decode, proven });
  }
  return 'witness';
}

/** Whether the difference was settled, so that the service can be asked anew; else a second look is wanted. */
async function* settleDifference(
  found: Difference,
  file: LiveFile,
  { decode, witnesses }: FollowContext & { readonly decode: Decode },
): Follow<boolean> {
  // What was never promised says nothing against what was: it is taken back first, for the remote file is right.
  const unpromised = file.length > file.committed && file.doubt !== 'unknown';
  const sound = Math.max(found.at, file.committed);
  if (unpromised && (found.kind === 'different' || file.doubt === 'damaged')) {
    await file.cut(sound);
    return true;
  }
  if (file.doubt === 'none' && !(await file.hasItsFingerprint())) {
    file.raiseDoubt('damaged');
    return true;
  }
  if (file.doubt === 'damaged' && found.kind === 'different' && (yield* onlyMirrorChanged(found.at, file, decode))) {
    await file.cut(found.at);
    return true;
  }
  if (!witnesses.confirm(file, found.kind)) return false;
  if (unpromised) await file.cut(sound);
  else await file.startGeneration();
  return true;
}

/** Whether the end of a mirror that somebody changed says that the remote file is still the same. */
async function* onlyMirrorChanged(at: number, file: LiveFile, decode: Decode): Follow<boolean> {
  if (!(await file.hasItsFingerprint())) return true;
  if (at >= file.fingerprintStart) return false;
  const from = await alignDown(file, file.fingerprintStart);
  const part = yield from;
  if (part === undefined) return false;
  const found = await match(decode(part.content), file, { from, to: file.committed });
  return found.kind === 'same';
}
