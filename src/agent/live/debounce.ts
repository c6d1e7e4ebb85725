/**
 * Debounces the symptoms of live files. Network file systems show stale sizes for seconds (docs/dev/servers.md 1.6). So a
 * rewrite must be seen by two polls, and a truncation for some seconds, before the agent acts.
 */
import type { FileMemory, LiveFile } from './mirror/live-file.ts';

/**
 * shorter, different: as the comparison found the file (match.ts). tail: it ends inside a character. unclear: responses
 * contradict each other. stuck: polls leave work undone.
 */
type SymptomKind = 'shorter' | 'different' | 'tail' | 'unclear' | 'stuck';

/**
 * How long a symptom must last before the agent acts, in milliseconds; 0: the next poll sees it, too. Documents name
 * these times (scripts/check-documents.mjs).
 */
export const PERSISTS_MS: Readonly<Record<SymptomKind, number>> = {
  shorter: 5_000,
  different: 0,
  tail: 30_000,
  unclear: 30_000,
  stuck: 60_000,
};

interface Symptom {
  /** When it was first seen, in milliseconds. */
  readonly since: number;
  /** Length of the mirror at that time. */
  readonly length: number;
}

export class Debounce {
  readonly #now: () => number;
  readonly #symptoms = new WeakMap<FileMemory, Map<SymptomKind, Symptom>>();

  /** `now`: monotonic clock, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Records a symptom. Returns whether an earlier poll saw it, long enough ago, and the mirror kept its length. */
  hasPersisted({ memory, length }: LiveFile, kind: SymptomKind): boolean {
    const symptoms = this.#symptoms.get(memory) ?? new Map<SymptomKind, Symptom>();
    this.#symptoms.set(memory, symptoms);
    const seen = symptoms.get(kind);
    if (seen?.length === length) return this.#now() - seen.since >= PERSISTS_MS[kind];
    symptoms.set(kind, { since: this.#now(), length });
    return false;
  }

  clear({ memory }: LiveFile, ...kinds: readonly SymptomKind[]): void {
    for (const kind of kinds) this.#symptoms.get(memory)?.delete(kind);
  }
}
