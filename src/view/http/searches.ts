/** What a search tells, line by line, while it goes on. */
import type { Content } from '../content/content.ts';
import type { Match, Pattern } from '../content/pattern.ts';
import { searchBackward, searchForward } from '../content/search.ts';
import type { SearchLine } from '../contract/searches.ts';
import { Refused } from '../refused.ts';

export interface SearchPlace {
  readonly from: number | undefined;
  readonly before: number | undefined;
  readonly most: number | undefined;
}

const MOST_TOLD = 10_000;
const MARKS = 256;
const TELL_MS = 150;

export async function* matchesOf(content: Content, pattern: Pattern, place: SearchPlace): AsyncGenerator<SearchLine> {
  const { version } = content;
  try {
    if (place.before !== undefined) yield* lastBefore(content, pattern, Math.min(place.before, content.bytes));
    else if (place.from !== undefined) yield* someFrom(content, pattern, { from: place.from, most: place.most ?? 1 });
    else yield* all(content, pattern);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    yield { done: true, count: 0, version: error.refusal.version ?? version, cut: error.message };
  }
}

async function* lastBefore(content: Content, pattern: Pattern, before: number): AsyncGenerator<SearchLine> {
  const match = await searchBackward(content, pattern, before);
  if (match !== undefined) yield { at: [match] };
  yield { done: true, count: match === undefined ? 0 : 1, version: content.version };
}

interface Some {
  readonly from: number;
  readonly most: number;
}

async function* someFrom(content: Content, pattern: Pattern, { from, most }: Some): AsyncGenerator<SearchLine> {
  const found: Match[] = [];
  const wanted = Math.min(most, MOST_TOLD);
  for await (const { matches } of searchForward(content, pattern, from)) {
    found.push(...matches.slice(0, wanted - found.length));
    if (found.length === wanted) break;
  }
  if (found.length > 0) yield { at: found };
  yield { done: true, count: found.length, version: content.version };
}

async function* all(content: Content, pattern: Pattern): AsyncGenerator<SearchLine> {
  const { bytes: of, version } = content;
  const marks: number[] = Array(MARKS).fill(0);
  let count = 0;
  let told = 0;
  let untold: Match[] = [];
  let toldAt = performance.now();
  for await (const { matches, searched } of searchForward(content, pattern, 0)) {
    count += matches.length;
    for (const [byte] of matches) {
      const mark = Math.floor((byte / of) * MARKS);
      marks[mark] = (marks[mark] ?? 0) + 1;
    }
    untold.push(...matches.slice(0, MOST_TOLD - told - untold.length));
    if (performance.now() - toldAt < TELL_MS) continue;
    toldAt = performance.now();
    if (untold.length > 0) yield { at: untold };
    told += untold.length;
    untold = [];
    yield { searched, of, count };
  }
  if (untold.length > 0) yield { at: untold };
  yield { searched: of, of, count };
  yield { marks };
  yield { done: true, count, version };
}
