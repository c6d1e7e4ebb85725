/** How the agent and its service stand, for STATUS=, /healthz and /readyz; and the observer that counts what happens. */
import { ERROR_POLICIES, type ErrorCode } from '../errors.ts';
import { countOf, showAge } from '../numbers.ts';
import type { Store } from '../store/store.ts';
import type { AgentFigures } from '../view/events/figures.ts';
import type { Observer } from './connection.ts';
import type { Metrics } from './metrics.ts';

/** The scheduler has not gone round for so long, and the agent is not healthy. */
const UNHEALTHY_MS = 60_000;

export class AgentHealth {
  readonly #now: () => number;
  #failure: { readonly code: ErrorCode; readonly since: number } | undefined;
  #turnedAt: number;
  /** It follows: the first sign-in was tried. */
  isReady = false;
  /** Why a changed configuration is not in force. */
  refused: string | undefined;
  /** Why there is no view in the browser, though there should be one. */
  view: string | undefined;

  /** `now` is in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
    this.#turnedAt = now();
  }

  /** How one call or sign-in ended. */
  note(outcome: 'ok' | ErrorCode): void {
    if (outcome === 'aborted') return;
    if (outcome === 'ok' || ERROR_POLICIES[outcome].outage === null) this.#failure = undefined;
    else this.#failure = { code: outcome, since: this.#failure?.since ?? this.#now() };
  }

  /** The scheduler went round. */
  turned(): void {
    this.#turnedAt = this.#now();
  }

  /** Milliseconds since the scheduler went round. */
  get turnAgeMs(): number {
    return this.#now() - this.#turnedAt;
  }

  /** What is wrong with the service, and for how many milliseconds; undefined while it answers. */
  get failure(): { readonly text: string; readonly forMs: number } | undefined {
    if (this.#failure === undefined) return undefined;
    const { code, since } = this.#failure;
    return { text: `the service ${ERROR_POLICIES[code].outage}`, forMs: this.#now() - since };
  }

  /** Why the agent should be restarted; undefined if it should not. */
  unhealthy(): string | undefined {
    const ageMs = this.turnAgeMs;
    return ageMs < UNHEALTHY_MS ? undefined : `the scheduler has not gone round for ${Math.round(ageMs / 1000)} s`;
  }

  /** Why the agent cannot do its work now; undefined if it can. */
  unready(): string | undefined {
    return this.isReady ? (this.failure?.text ?? this.unhealthy()) : 'the first sign-in is not through';
  }

  /** The line that `systemctl status` shows for the agent. */
  text(jobs: number, { totals }: Pick<Store, 'totals'>): string {
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

export interface ObservingOptions {
  readonly health: AgentHealth;
  readonly figures: AgentFigures;
  readonly metrics: () => Metrics | undefined;
}

export function observing({ health, figures, metrics }: ObservingOptions): Observer {
  return {
    call(event) {
      health.note(event.outcome);
      metrics()?.call(event);
      figures.call(event);
    },
    answered: (workMs, isPause) => metrics()?.answered(workMs, isPause),
    signIn(event) {
      const outcome = event.kind === 'failed' ? event.error.code : 'ok';
      health.note(outcome);
      metrics()?.signIn(outcome);
      figures.signIn(outcome);
    },
    appended(bytes) {
      metrics()?.appended(bytes);
      figures.mirrored(bytes);
    },
    fetched(bytes, kind) {
      metrics()?.fetched(bytes, kind);
      figures.fetched(bytes);
    },
    tasksFound: (tasks, by) => metrics()?.tasksFound(tasks, by),
    mismatch: (kind) => metrics()?.mismatch(kind),
    jobStatesRead: (outcome) => metrics()?.jobStatesRead(outcome),
  };
}
