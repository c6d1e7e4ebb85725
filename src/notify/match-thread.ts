/** Tests lines against the expressions of rules in a thread, and skips them when that takes too long. */
import { ExpressionThread } from '../search/expression-thread.ts';

/** The indexes of matching lines; undefined if they were not tested, because that takes too long. */
export type Matches = (pattern: string, lines: readonly string[]) => Promise<number[] | undefined>;

/** For all rules together in a minute: then, lines are skipped until it is over. */
const MAX_MS_PER_MINUTE = 20_000;
const MINUTE_MS = 60_000;

export class MatchThread {
  readonly #thread = new ExpressionThread();
  #minuteAt = Number.NEGATIVE_INFINITY;
  #spentMs = 0;

  /** One at a time. */
  readonly matches: Matches = async (pattern, lines) => {
    const startedAt = performance.now();
    if (startedAt - this.#minuteAt >= MINUTE_MS) [this.#minuteAt, this.#spentMs] = [startedAt, 0];
    if (this.#spentMs >= MAX_MS_PER_MINUTE) return undefined;
    const found = await this.#thread.find({ source: pattern, flags: '', texts: lines });
    this.#spentMs += performance.now() - startedAt;
    return found?.flatMap(({ length }, index) => (length > 0 ? [index] : []));
  };

  close(): void {
    this.#thread.close();
  }
}
