/**
 * Debounces the symptoms of a live file. Network file systems show stale sizes for seconds (docs/servers.md 1.6). So a
 * rewrite must be seen by two polls, and a truncation for some seconds, before the agent acts.
 */
import type { Symptom, SymptomKind } from './memory.ts';
import type { LiveFile } from './mirror/live-file.ts';

/**
 * How long a file must look shorter; a cut character or undetermined bytes must last before raw bytes are requested; a
 * file must make no progress before it is reported as stuck. Documents name these times (test/guarantees.test.ts).
 */
export const DEBOUNCE_TIMES = { staleMs: 5_000, tailMs: 30_000, stuckMs: 60_000 } as const;

export class Debounce {
  readonly #now: () => number;

  /** `now`: monotonic clock, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Records that a file differs from its mirror. Returns whether an earlier poll saw it too, long enough ago. */
  confirm(file: LiveFile, kind: 'shorter' | 'different'): boolean {
    const seen = this.#first(file, 'difference');
    if (seen === undefined) return false;
    return kind === 'different' || this.#now() - seen.since >= DEBOUNCE_TIMES.staleMs;
  }

  /** Whether the symptom has persisted for its time while the mirror kept its length. */
  hasPersisted(file: LiveFile, kind: Exclude<SymptomKind, 'difference'>): boolean {
    const seen = this.#first(file, kind);
    const longMs = kind === 'stuck' ? DEBOUNCE_TIMES.stuckMs : DEBOUNCE_TIMES.tailMs;
    return seen !== undefined && this.#now() - seen.since >= longMs;
  }

  clear(file: LiveFile, kind: SymptomKind): void {
    file.memory.symptoms?.delete(kind);
  }

  /** Returns the symptom of an earlier poll; records a new one if there is none, or the mirror has another length. */
  #first(file: LiveFile, kind: SymptomKind): Symptom | undefined {
    file.memory.symptoms ??= new Map();
    const seen = file.memory.symptoms.get(kind);
    if (seen !== undefined && seen.length === file.length) return seen;
    file.memory.symptoms.set(kind, { since: this.#now(), length: file.length });
    return undefined;
  }
}
