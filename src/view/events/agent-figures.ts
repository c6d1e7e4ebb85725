/** What the running agent counts for the view, from one figure to the next. */
import type { CallFigures, Figure } from '../contract/service.ts';

export type AgentFigure = NonNullable<Figure['agent']>;

/** A call or a sign-in that ended. */
export interface CallEnd {
  readonly operation: string;
  readonly durationMs: number;
  /** `ok`, or the code of the failure. */
  readonly outcome: string;
  readonly bytes: number;
}

export class AgentFigures {
  #calls: Record<string, CallFigures> = {};
  #failures: Record<string, number> = {};
  #signIns = 0;
  #mirroredBytes = 0;
  #resultBytes = 0;

  call({ operation, durationMs, outcome, bytes }: CallEnd): void {
    const { calls = 0, bytes: sum = 0, totalMs = 0, longestMs = 0 } = this.#calls[operation] ?? {};
    this.#calls[operation] = {
      calls: calls + 1,
      bytes: sum + bytes,
      totalMs: totalMs + durationMs,
      longestMs: Math.max(longestMs, durationMs),
    };
    this.#ended(outcome);
  }

  signIn(outcome: string): void {
    this.#signIns++;
    this.#ended(outcome);
  }

  mirrored(bytes: number): void {
    this.#mirroredBytes += bytes;
  }

  fetched(bytes: number): void {
    this.#resultBytes += bytes;
  }

  /** Since it was last taken. `waiting`: calls that wait for their turn. */
  take(waiting: number): AgentFigure {
    const taken = {
      waiting,
      calls: this.#calls,
      failures: this.#failures,
      signIns: this.#signIns,
      mirroredBytes: this.#mirroredBytes,
      resultBytes: this.#resultBytes,
    };
    this.#calls = {};
    this.#failures = {};
    this.#signIns = 0;
    this.#mirroredBytes = 0;
    this.#resultBytes = 0;
    return taken;
  }

  #ended(outcome: string): void {
    // What was stopped did not fail.
    if (outcome !== 'ok' && outcome !== 'aborted') this.#failures[outcome] = (this.#failures[outcome] ?? 0) + 1;
  }
}
