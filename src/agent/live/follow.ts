/**
 * One poll of one live file, as a recipe: ask from a little before the position, hold what comes back against the
 * mirror, append the rest.
 */
import type { Part } from '../ports.ts';
import { appendFar, appendRest } from './append-rest.ts';
import { findMark, Marked } from './byte-order-mark.ts';
import { compare } from './compare.ts';
import type { TextEncoding } from './encoding.ts';
import { proveEncoding } from './encoding-proof.ts';
import type { LiveFile } from './live-file.ts';
import { type Difference, match } from './match.ts';
import { alignDown, askFrom } from './offsets.ts';
import type { Follow, FollowContext, FollowEnd } from './recipe.ts';

const MOST_ATTEMPTS = 4;

export async function* follow(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    const from = await askFrom(file);
    const part = yield from;
    if (part === undefined) return 'absent';
    if (!part.isBeginning) file.note({ relativePath: part.relativePath });

    // Hold the answer against what is there; a difference is mended, kept as a generation, or looked at twice.
    const found = yield* compareFrom(from, part, file, context);
    if (found === 'again') return 'witness';
    if (found.kind !== 'same') {
      if (yield* settleDifference(found, file, context)) continue;
      return 'witness';
    }
    context.witnesses.clear(file, 'difference');
    file.trust(found.unproven);
    if (file.row.inexact.length > 0) await context.rawBytes.mend(file, context);
    if (part.isBeginning) return yield* appendFar(file, found.answer, context);
    return yield* appendRest(file, found.answer, context);
  }
  return 'witness';
}

/** Compares the answer with the mirror; if it begins the file, also with the byte-order mark that it may lack. */
async function* compareFrom(from: number, part: Part, file: LiveFile, context: FollowContext) {
  const { encoding, final } = context;
  const readText = () => ({ offset: from, reading: encoding.reading(part.content) });
  const mayLackMark = from === 0 && !encoding.keepsMark;
  if (!mayLackMark) return yield* compare(file, readText(), context);
  if (file.doubt === 'none' && file.length > 0) {
    const found = yield* compare(file, readText(), context);
    if (found === 'again' || found.kind !== 'different') return found;
  }
  // An empty text is that of an empty file, or of one that holds a mark and nothing else.
  if (part.content.length === 0 && !final) return yield* compare(file, readText(), context);
  const reading = yield* proveEncoding({ position: 0, mayLackMark: true }, readText().reading, encoding);
  if (reading === 'again') return reading;
  if (encoding.codePage !== undefined) return yield* compare(file, { offset: from, reading }, context);
  const { mark, second } = yield* findMark(part.content, encoding);
  if (mark === 'again') return mark;
  const content = mark === 'swallowed' ? new Marked(part.content) : part.content;
  return yield* compare(file, { offset: from, reading: encoding.reading(content), second }, context);
}

/** Whether the difference was settled, so that the service can be asked anew; else a second look is wanted. */
async function* settleDifference(
  found: Difference,
  file: LiveFile,
  { encoding, witnesses }: FollowContext,
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
  if (file.doubt === 'damaged' && found.kind === 'different' && (yield* onlyMirrorChanged(found.at, file, encoding))) {
    await file.cut(found.at);
    return true;
  }
  if (!witnesses.confirm(file, found.kind)) return false;
  encoding.doubt();
  if (unpromised) await file.cut(sound);
  else await file.startGeneration();
  return true;
}

/** Whether the end of a mirror that somebody changed says that the remote file is still the same. */
async function* onlyMirrorChanged(at: number, file: LiveFile, encoding: TextEncoding): Follow<boolean> {
  if (!(await file.hasItsFingerprint())) return true;
  if (at >= file.fingerprintStart) return false;
  const from = await alignDown(file, file.fingerprintStart);
  const part = yield from;
  if (part === undefined) return false;
  const found = await match(encoding.reading(part.content), file, { from, to: file.committed });
  return found.kind === 'same';
}
