/** The line indexes of the contents that were looked at last: made in the background while somebody waits or looks. */
import type { Content } from './content.ts';
import { LineIndex } from './line-index.ts';

const MOST_KEPT = 64;

interface Kept {
  readonly index: LineIndex;
  counting: Promise<void> | undefined;
}

export class LineIndexes {
  readonly #kept = new Map<string, Kept>();

  /** `key` names a version of a content. */
  of(key: string): LineIndex {
    return this.#keptOf(key).index;
  }

  /**
   * Counts to the end of the content, which is closed then; another one of the same key that counts already is waited for
   * first. `onCounted` is called now and then. Ends early when the signal fires.
   * @throws Refused (409) if the content became another
   */
  async count(key: string, content: Content, { signal, onCounted }: CountOptions): Promise<LineIndex> {
    const kept = this.#keptOf(key);
    try {
      while (kept.counting !== undefined && !signal.aborted) await kept.counting.catch(() => {});
      if (kept.index.counted !== content.bytes && !signal.aborted) {
        kept.counting = this.#countOn(kept.index, content, { signal, onCounted });
        await kept.counting.finally(() => {
          kept.counting = undefined;
        });
      }
      return kept.index;
    } finally {
      content.close();
    }
  }

  async #countOn(index: LineIndex, content: Content, { signal, onCounted }: CountOptions): Promise<void> {
    for await (const _ of index.count(content)) {
      onCounted?.();
      if (signal.aborted) return;
    }
  }

  /** The last one that was asked for goes last. */
  #keptOf(key: string): Kept {
    const kept = this.#kept.get(key) ?? { index: new LineIndex(), counting: undefined };
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    for (const [old, { counting }] of this.#kept) {
      if (this.#kept.size <= MOST_KEPT) break;
      if (counting === undefined) this.#kept.delete(old);
    }
    return kept;
  }
}

export interface CountOptions {
  readonly signal: AbortSignal;
  readonly onCounted?: (() => void) | undefined;
}
