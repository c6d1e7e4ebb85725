/** What to do about a mirror that is not the beginning of its remote file: mend it, keep it as a generation, or look twice. */
import type { Mismatch } from '../../mismatch.ts';
import type { Follow } from '../ports.ts';
import { type Difference, match } from './compare/match.ts';
import type { LiveFile } from './mirror/live-file.ts';
import { FINGERPRINT_BYTES } from './mirror/mirror.ts';
import { alignDown } from './offsets.ts';
import type { FollowContext } from './steps.ts';
import type { Decode } from './text/explain.ts';

function remoteMismatch({ kind, at }: Difference, file: LiveFile, seenIn = ''): Mismatch {
  const lost = file.integrity === 'unknown' ? '; the state of the mirror was lost' : '';
  if (kind === 'different')
    return { kind: 'rewritten', at, reason: `its byte ${at} differs from the mirror${seenIn}${lost}` };
  return { kind: 'truncated', at, reason: `it has at most ${at} bytes, the mirror has ${file.length}${seenIn}${lost}` };
}

const IN_RAW_BYTES = ', as its raw bytes show';
const changedFrom = (at: number) => `another process changed it: from byte ${at} on it differs from the remote file`;
const uncommittedFrom = (at: number) => `its uncommitted bytes differ from the remote file from byte ${at} on`;

/** Whether the difference was resolved, so that the service can be asked anew; else a second look is wanted. */
export async function* resolveDifference(
  found: Difference,
  file: LiveFile,
  { decode, sightings }: FollowContext & { readonly decode: Decode },
): Follow<boolean> {
  // What was never promised says nothing against what was: it is taken back first, for the remote file is right.
  const unpromised = file.length > file.committed && file.integrity !== 'unknown';
  const sound = Math.max(found.at, file.committed);
  if (unpromised && (found.kind === 'different' || file.integrity === 'modified')) {
    await file.cut(sound, uncommittedFrom(sound));
    return true;
  }
  if (file.integrity === 'intact' && !(await file.hasItsFingerprint())) {
    file.markModified();
    return true;
  }
  if (
    file.integrity === 'modified' &&
    found.kind === 'different' &&
    (yield* onlyMirrorChanged(found.at, file, decode))
  ) {
    await file.cut(found.at, changedFrom(found.at));
    return true;
  }
  if (!sightings.confirm(file, found.kind)) return false;
  if (unpromised) await file.cut(sound, uncommittedFrom(sound));
  else await file.startGeneration(remoteMismatch(found, file));
  return true;
}

/** Whether the end of a mirror that somebody changed says that the remote file is still the same. */
async function* onlyMirrorChanged(at: number, file: LiveFile, decode: Decode): Follow<boolean> {
  if (!(await file.hasItsFingerprint())) return true;
  const fingerprintStart = Math.max(0, file.row.position - FINGERPRINT_BYTES);
  if (at >= fingerprintStart) return false;
  const from = await alignDown(file, fingerprintStart);
  const part = yield from;
  if (part === undefined) return false;
  const found = await match(decode(part.content), file, { from, to: file.committed });
  return found.kind === 'same';
}

/** The same of one that the raw bytes show, where the text does not. */
export async function resolveByRawBytes(
  found: Difference,
  file: LiveFile,
  { sightings }: FollowContext,
): Promise<void> {
  if (!sightings.confirm(file, found.kind)) return;
  const unpromised = file.length > file.committed && file.integrity !== 'unknown';
  const sound = Math.max(found.at, file.committed);
  if (file.integrity === 'modified') await file.cut(found.at, changedFrom(found.at));
  else if (unpromised) await file.cut(sound, uncommittedFrom(sound));
  else await file.startGeneration(remoteMismatch(found, file, IN_RAW_BYTES));
}
