/** What a running agent mirrored, called and failed at: as rates of the last two hours, for the charts of its service. */
import { ERROR_POLICIES, type ErrorCode } from '../../errors.ts';
import type { Figure } from '../contract/events.ts';

/** Counted by the agent since it began. */
export class AgentCounts {
  bytes = 0;
  /** By operation. */
  readonly calls: Record<string, number> = {};
  /** Failed calls and sign-ins, by what the service does. */
  readonly failures: Record<string, number> = {};

  call(operation: string, outcome: ErrorCode | 'ok'): void {
    this.calls[operation] = (this.calls[operation] ?? 0) + 1;
    this.ended(outcome);
  }

  ended(outcome: ErrorCode | 'ok'): void {
    // What was stopped did not fail; a no is an answer: the agent asks for files that may not be there yet.
    if (outcome === 'ok' || outcome === 'aborted' || ERROR_POLICIES[outcome].isRefusal) return;
    const words = ERROR_POLICIES[outcome].outage ?? outcome.replaceAll('-', ' ');
    this.failures[words] = (this.failures[words] ?? 0) + 1;
  }
}

/** One each five seconds. */
const MAX_FIGURES = 1_440;

export class Figures {
  /** The oldest first. */
  all: readonly Figure[] = [];
  #before: { readonly at: number; readonly counts: AgentCounts } | undefined;

  /** The first counts have no rate: since when they were counted is not known. */
  add(counts: AgentCounts, at: number): void {
    const before = this.#before;
    this.#before = { at, counts };
    if (before === undefined) return;
    if (at <= before.at) {
      // The clock was set back.
      this.all = this.all.filter((figure) => figure.at < at);
      return;
    }
    const seconds = (at - before.at) / 1000;
    const rates = (kind: 'calls' | 'failures') =>
      Object.fromEntries(
        Object.entries(counts[kind]).map(([name, count]) => {
          const more = count - (before.counts[kind][name] ?? 0);
          return [name, (60 * more) / seconds];
        }),
      );
    const bytes = (counts.bytes - before.counts.bytes) / seconds;
    this.all = [...this.all.slice(1 - MAX_FIGURES), { at, bytes, calls: rates('calls'), failures: rates('failures') }];
  }
}
