/** What goes wrong during the soak: the service, sessions, the mirrors, and people who change their mind. */
import type { FaultEffect } from '../../simulator/faults.ts';
import type { Sandbox } from '../../simulator/sandbox.ts';
import type { SoakAgent } from './agent.ts';
import { type ClusterWork, oneOf } from './cluster-work.ts';

const EFFECTS: readonly FaultEffect[] = [
  { kind: 'fault', text: 'the scheduler does not answer' },
  { kind: 'http', status: 503, headers: { 'retry-after': '2' } },
  { kind: 'http', status: 429, headers: { 'retry-after': '2' } },
  { kind: 'http', status: 502, body: '<html><title>Bad Gateway</title></html>' },
  { kind: 'body', body: 'no XML at all' },
  { kind: 'delay', ms: 3_000 },
  { kind: 'stall' },
  { kind: 'hang' },
  { kind: 'reset' },
  { kind: 'reset', afterBytes: 300 },
  { kind: 'drip', bytes: 200, everyMs: 50 },
  { kind: 'truncate', afterBytes: 400 },
  { kind: 'staleSize', bytes: 100 },
];
/** Seconds between two of a kind, on average. */
const FAULT_EVERY = 15;
const SESSION_EVERY = 60;
const EDIT_EVERY = 45;
const REWATCH_EVERY = 60;
const RELOAD_EVERY = 300;

export class Mischief {
  readonly done = { faults: 0, sessionsEnded: 0, edited: 0, watchedAgain: 0, reloads: 0 };
  readonly #sandbox: Sandbox;
  readonly #agent: SoakAgent;
  readonly #work: ClusterWork;

  constructor(sandbox: Sandbox, agent: SoakAgent, work: ClusterWork) {
    this.#sandbox = sandbox;
    this.#agent = agent;
    this.#work = work;
  }

  /** What happens within one second. */
  advance(): void {
    const job = oneOf(this.#work.jobs);
    if (comes(FAULT_EVERY)) {
      // Some for one job, some for whoever calls next.
      const scope = Math.random() < 0.5 ? { jobId: job.jobId } : {};
      this.#sandbox.faults.add({ ...oneOf(EFFECTS), ...scope, times: 1 + Math.floor(Math.random() * 5) });
      this.done.faults += 1;
    }
    if (comes(SESSION_EVERY)) {
      this.#sandbox.expireSessions();
      this.done.sessionsEnded += 1;
    }
    if (comes(EDIT_EVERY) && this.#agent.edit(job)) this.done.edited += 1;
    if (comes(REWATCH_EVERY)) {
      this.#agent.watchAgain(job);
      this.done.watchedAgain += 1;
    }
    if (comes(RELOAD_EVERY)) {
      this.#agent.reload();
      this.done.reloads += 1;
    }
  }

  end(): void {
    this.#sandbox.faults.clear();
  }
}

const comes = (everySeconds: number) => Math.random() < 1 / everySeconds;
