/** The state of the agent and its service, for STATUS=, /healthz and /readyz; counts the results of calls. */
import { EventEmitter } from 'node:events';
import { ERROR_POLICIES, type ErrorCode, type JobtailError } from '../errors.ts';
import { countOf, showAge } from '../numbers.ts';
import type { Outage } from '../store/outage.ts';
import type { Store } from '../store/store.ts';
import type { AgentCounts } from '../view/events/figures.ts';
import type { Observer } from './observer.ts';

/** Without a turn of the scheduler for this time, the agent is not healthy. */
const UNHEALTHY_MS = 60_000;

export class AgentHealth {
  readonly #now: () => number;
  readonly #onOutage: (outage: Outage | undefined) => void;
  #outage: Outage | undefined;
  #failsSince = 0;
  #turnedAt: number;
  /** Whether the first sign-in was attempted. */
  isReady = false;
  /** Why a changed configuration was refused. */
  refused: string | undefined;
  /** Why the configured view is not served. */
  view: string | undefined;

  /** `onOutage` receives each change: the service fails, or answers again. */
  constructor(now: () => number, onOutage: (outage: Outage | undefined) => void = () => {}) {
    this.#now = now;
    this.#onOutage = onOutage;
    this.#turnedAt = now();
  }

  /** `error`: what a failed sign-in reports. */
  note(outcome: 'ok' | ErrorCode, error?: JobtailError): void {
    if (outcome === 'aborted') return;
    const before = this.#outage;
    if (outcome === 'ok' || ERROR_POLICIES[outcome].outage === null) this.#outage = undefined;
    else if (before?.code !== outcome) {
      const message = `the service ${ERROR_POLICIES[outcome].outage}${error === undefined ? '' : `: ${error.message}`}`;
      if (before === undefined) this.#failsSince = this.#now();
      this.#outage = { code: outcome, message, hint: error?.hint ?? null, since: before?.since ?? Date.now() };
    }
    if (before !== this.#outage) this.#onOutage(this.#outage);
  }

  turned(): void {
    this.#turnedAt = this.#now();
  }

  get turnAgeMs(): number {
    return this.#now() - this.#turnedAt;
  }

  /** The error of the service and its age; undefined while it answers. */
  get failure(): { readonly text: string; readonly forMs: number } | undefined {
    if (this.#outage === undefined) return undefined;
    const { outage } = ERROR_POLICIES[this.#outage.code];
    return { text: `the service ${outage}`, forMs: this.#now() - this.#failsSince };
  }

  unhealthy(): string | undefined {
    const ageMs = this.turnAgeMs;
    return ageMs < UNHEALTHY_MS ? undefined : `the scheduler made no progress for ${Math.round(ageMs / 1000)} s`;
  }

  unready(): string | undefined {
    return this.isReady ? (this.failure?.text ?? this.unhealthy()) : 'the first sign-in has not ended';
  }

  text(jobs: number, { totals }: Store): string {
    const { failure } = this;
    const parts = [`following ${countOf(jobs, 'job')}`];
    if (failure !== undefined) parts.unshift(`${failure.text} since ${showAge(failure.forMs)}`);
    try {
      const { grownAt, failingJobs } = totals.watched();
      if (grownAt !== null) parts.push(`last growth ${showAge(Date.now() - grownAt)} ago`);
      if (failure === undefined && failingJobs > 0) parts.push(`${failingJobs} failing (agent status)`);
    } catch {
      parts.push('the state cannot be read');
    }
    if (this.refused !== undefined) parts.push(`the changed configuration is refused: ${this.refused}`);
    if (this.view !== undefined) parts.push(this.view);
    return parts.join(', ');
  }
}

/** The observer of an agent, which keeps its health and the counts of the charts. */
export function observing(health: AgentHealth, counts: AgentCounts): Observer {
  const observer: Observer = new EventEmitter();
  observer.on('call', ({ operation, outcome }) => {
    health.note(outcome);
    counts.call(operation, outcome);
  });
  observer.on('signIn', (event) => {
    const error = event.kind === 'failed' ? event.error : undefined;
    health.note(error?.code ?? 'ok', error);
    counts.ended(error?.code ?? 'ok');
  });
  observer.on('appended', (bytes) => {
    counts.bytes += bytes;
  });
  return observer;
}
