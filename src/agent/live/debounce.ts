/**
 * Debounces the symptoms of live files. Network file systems show stale sizes for seconds (docs/dev/servers.md 1.6). So a
 * rewrite must be seen by two polls, and a truncation for some seconds, before the agent acts.
 */

/** shorter, different: see decide.ts. incomplete-character: the file ends in one. unclear: responses differ. stuck: no progress. */
type SymptomKind = 'shorter' | 'different' | 'incomplete-character' | 'unclear' | 'stuck';

/** What shows the bytes of a file. Text shows fewer than raw bytes: not those before its offset, for example. */
export type ShownBy = 'text' | 'raw bytes';

/** How long a symptom must last, in ms; 0: until the next poll. scripts/check-documents.mjs checks these times. */
export const PERSISTS_MS: Readonly<Record<SymptomKind, number>> = {
  shorter: 5_000,
  different: 0,
  'incomplete-character': 30_000,
  unclear: 30_000,
  stuck: 60_000,
};

interface Symptom {
  /** When it was first seen, in milliseconds. */
  readonly since: number;
  /** Length of the mirror at that time. */
  readonly length: number;
  /** The byte where it was seen. */
  readonly at: number;
  readonly by: ShownBy;
}

/** The symptoms of one file. */
export class Symptoms {
  readonly #now: () => number;
  /** Thousands of files have none. */
  #seen: ReadonlyMap<SymptomKind, Symptom> | undefined;

  /** `now`: monotonic clock, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Records a symptom. Returns whether an earlier poll saw it, long enough ago, and the mirror kept its length since. */
  note(kind: SymptomKind, length: number, at = 0, by: ShownBy = 'text'): boolean {
    const seen = this.#seen?.get(kind);
    if (seen?.length === length) return this.#now() - seen.since >= PERSISTS_MS[kind];
    this.#seen = new Map([...(this.#seen ?? []), [kind, { since: this.#now(), length, at, by }]]);
    return false;
  }

  /** Records that the file has all bytes before `at`, whatever follows. */
  noteLength(at: number): void {
    if ((this.#seen?.get('shorter')?.at ?? at) < at) this.clear('shorter');
  }

  /** Records that the file has the bytes of the mirror: text proves nothing against a difference of raw bytes. */
  noteSame(by: ShownBy): void {
    this.clear('shorter');
    if (by === 'raw bytes' || this.#seen?.get('different')?.by === 'text') this.clear('different');
  }

  clear(...kinds: readonly SymptomKind[]): void {
    if (this.#seen !== undefined) this.#seen = new Map([...this.#seen].filter(([kind]) => !kinds.includes(kind)));
  }
}
