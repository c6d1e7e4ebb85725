/** The response to a request for parts of live files: its texts are buffered until it names their files. */
import type { Content, Part, PartRequest, Parts } from '../../agent/ports.ts';
import { keyText, type LiveFileName, type TaskId } from '../../job.ts';
import { HeldTexts } from './held-texts.ts';
import type { SpillPlace } from './spill-file.ts';

/** The description of one text in a response. */
export interface PartEntry {
  /** Undefined if it names none. */
  readonly taskId: TaskId | undefined;
  readonly file: LiveFileName | undefined;
  /** Decimal text; null without one. */
  readonly offset: string | null;
  readonly content: Content;
  readonly relativePath: string | null;
}

/** An absent content counts as an empty one. */
export const NO_CONTENT: Content = {
  length: 0,
  read: async () => Buffer.alloc(0),
  release: async () => undefined,
};

/**
 * The parts for `wanted` in the answer that `read` reads: it puts the texts into what it is given, as far as that wants
 * them, and returns the entries. Releases contents of entries that were not requested, and all of them if it throws.
 */
export async function holdParts(
  wanted: readonly PartRequest[],
  place: SpillPlace,
  read: (held: HeldTexts) => Promise<readonly PartEntry[]>,
): Promise<Parts> {
  const [only, ...others] = wanted;
  const held = new HeldTexts(place, enoughOf(wanted));
  try {
    const entries = await read(held);
    if (only === undefined || !held.hasEnough) return await matchParts(entries, wanted);
    // What names the file would have come after its text.
    const { taskId, file, offset } = only;
    const content = await held.endEarly();
    if (others.length > 0) {
      await content.release();
      return { parts: [], refused: 0, isCut: true };
    }
    return { parts: [{ taskId, file, offset, content, relativePath: null, isBeginning: true }], refused: 0 };
  } catch (error) {
    await held.discard();
    throw error;
  } finally {
    await held.close();
  }
}

/** Of several files, a text is cut only where no request wants more of it. */
function enoughOf(wanted: readonly PartRequest[]): number | undefined {
  if (wanted.some(({ enoughBytes }) => enoughBytes === undefined)) return undefined;
  return Math.min(...wanted.map(({ enoughBytes = Number.POSITIVE_INFINITY }) => enoughBytes));
}

/** Each request takes the first entry of its task and file. */
async function matchParts(entries: readonly PartEntry[], wanted: readonly PartRequest[]): Promise<Parts> {
  const missing = new Map(wanted.map((request) => [keyText(request), request]));
  const parts: Part[] = [];
  const refused: Content[] = [];
  for (const entry of entries) {
    const request = requestOf(entry, missing);
    if (request === undefined) {
      refused.push(entry.content);
      continue;
    }
    missing.delete(keyText(request));
    const { taskId, file, offset } = request;
    parts.push({ taskId, file, offset, content: entry.content, relativePath: entry.relativePath });
  }
  await Promise.all(refused.map((content) => content.release()));
  return { parts, refused: refused.length };
}

/** The request that an entry answers; servers echo the offset, or leave it nil or 0 (docs/servers.md 1.1). */
function requestOf(
  { taskId, file, offset }: PartEntry,
  missing: ReadonlyMap<string, PartRequest>,
): PartRequest | undefined {
  if (taskId === undefined || file === undefined) return undefined;
  const request = missing.get(keyText({ taskId, file }));
  return offset === null || offset === '0' || offset === String(request?.offset) ? request : undefined;
}
