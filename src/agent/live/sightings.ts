/**
 * What was seen of a live file and is not acted upon at first sight. Network file systems show stale sizes for seconds
 * (docs/servers.md 1.6), so a file that looks truncated or rewritten has to look so in two polls; one that looks
 * shorter has to look so for a while.
 */
import type { Sight, Sighting } from './memory.ts';
import type { LiveFile } from './mirror/live-file.ts';

/** How long a symptom has to persist before it is acted upon. Documents name these times (test/guarantees.test.ts). */
export const SIGHTING_TIMES = { staleMs: 5_000, tailMs: 30_000, stuckMs: 60_000 } as const;

interface SightingOptions {
  /** Wall clock of the agent, in milliseconds; only differences of it are used. */
  readonly now: () => number;
  /** How long a file has to look shorter. */
  readonly staleMs: number;
  /** How long the same end inside a character, or what is unclear, has to be seen before raw bytes are fetched. */
  readonly tailMs: number;
  /** How long a file may have work left that it cannot do before it is said. */
  readonly stuckMs: number;
}

export class Sightings {
  readonly #options: SightingOptions;

  constructor(options: SightingOptions) {
    this.#options = options;
  }

  /** Notes that a file differs from its mirror; true if an earlier poll saw it too, long enough ago. */
  confirm(file: LiveFile, kind: 'shorter' | 'different'): boolean {
    const seen = this.#look(file, 'difference');
    if (seen === undefined) return false;
    return kind === 'different' || this.#options.now() - seen.since >= this.#options.staleMs;
  }

  /** Whether the mirror has had the same length for long while it ended inside a character, was unclear, or stuck. */
  longSeen(file: LiveFile, sight: Exclude<Sight, 'difference'>): boolean {
    const seen = this.#look(file, sight);
    const longMs = sight === 'stuck' ? this.#options.stuckMs : this.#options.tailMs;
    return seen !== undefined && this.#options.now() - seen.since >= longMs;
  }

  clear(file: LiveFile, sight: Sight): void {
    file.memory.sightings?.delete(sight);
  }

  /** What an earlier poll saw; notes it if there was nothing, or the mirror has another length since. */
  #look(file: LiveFile, sight: Sight): Sighting | undefined {
    file.memory.sightings ??= new Map();
    const seen = file.memory.sightings.get(sight);
    if (seen !== undefined && seen.length === file.length) return seen;
    file.memory.sightings.set(sight, { since: this.#options.now(), length: file.length });
    return undefined;
  }
}
