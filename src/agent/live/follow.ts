/**
 * One poll of one live file, as a recipe: ask from a little before the position, hold what comes back against the
 * mirror, append the rest.
 */

import { JobtailError } from '../../errors.ts';
import type { Follow, Part } from '../ports.ts';
import { appendFar, appendRest } from './append/append.ts';
import type { Shown } from './append/raw-bytes.ts';
import type { ShownPart } from './append/raw-download.ts';
import { compare } from './compare/compare.ts';
import type { LiveFile } from './mirror/live-file.ts';
import { askFrom } from './offsets.ts';
import { resolveByRawBytes, resolveDifference } from './resolve-difference.ts';
import type { FollowContext, FollowEnd } from './steps.ts';
import { CodePage } from './text/code-page.ts';
import { UnknownCodePage } from './text/encoding.ts';
import { explain } from './text/explain.ts';
import { EncodedReading, Utf8Reading } from './text/reading.ts';

const MOST_ATTEMPTS = 4;

export async function* follow(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  let end: FollowEnd;
  try {
    end = yield* followText(file, context);
  } catch (error) {
    if (!(error instanceof UnknownCodePage)) throw error;
    end = yield* decide(file, context);
    if (end === 'unclear') throw error;
  }
  if (end !== 'unclear') context.sightings.clear(file, 'unclear');
  else if (context.sightings.longSeen(file, 'unclear') || context.final) return yield* decide(file, context);
  return end;
}

async function* followText(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    const from = await askFrom(file);
    const part = yield from;
    if (part === undefined) return 'absent';
    if (!part.isBeginning || part.content.length === 0) file.note({ relativePath: part.relativePath });
    if (part.isBeginning && part.content.length === 0) return yield* fillRaw(file, context);

    // Find out how it is to be read, and hold it against what is there.
    const explained = yield* explain(from, part, file, context);
    if (explained === 'again') return 'unclear';
    const { reading, second, decode, identified } = explained;
    const found = yield* compare(file, { offset: from, reading, second }, { decode, final: context.final });
    if (found === 'again') return 'unclear';

    // A difference is mended, kept as a generation, or looked at twice.
    if (found.kind !== 'same') {
      if (yield* resolveDifference(found, file, { ...context, decode })) continue;
      return 'different';
    }
    file.markCompared(found.undetermined);
    if (file.row.inexact.length > 0) {
      const differs = yield* context.rawBytes.mend(file, await shownBy(from, part, context), context);
      if (differs !== undefined) {
        await resolveByRawBytes(differs, file, context);
        return 'different';
      }
    }
    context.sightings.clear(file, 'difference');
    if (part.isBeginning) return yield* appendFar(file, found.answer, context);
    return yield* appendRest(file, found.answer, { ...context, decode, identified });
  }
  return 'unclear';
}

/** What the text leaves open, for it fits nothing that is known, the raw bytes of the file decide. */
async function* decide(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  const from = await askFrom(file);
  const part = yield from;
  if (part === undefined) return 'absent';
  return (yield* decideBy(await shownBy(from, part, context), file, context)) ?? 'unclear';
}

/** Brings what is longer than the service can send as text: its raw bytes, proven by the text of their end. */
async function* fillRaw(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  const end = yield* decideBy(async (from, part) => await shownBy(from, part, context), file, context);
  if (end !== undefined) return end;
  throw new JobtailError('stuck', 'longer than this service can send in parts; it comes raw', {
    hint: 'its raw bytes are not to be had now: they are asked for again, and less often each time',
  });
}

async function* decideBy(shown: Shown, file: LiveFile, context: FollowContext): Follow<FollowEnd | undefined> {
  const found = yield* context.rawBytes.compare(file, shown, context);
  if (found === undefined) return undefined;
  if (found === 'same') return 'current';
  await resolveByRawBytes(found, file, context);
  return 'different';
}

/** The text of an answer, as either family of decoders may have made it. */
async function shownBy(from: number, { content }: Part, { encoding }: FollowContext): Promise<ShownPart> {
  const text = new Utf8Reading(content);
  const codePages = new CodePage(encoding.codePagesShowing(Buffer.alloc(0), await text.text()));
  return { from, texts: [text, new EncodedReading(content, codePages)] };
}
