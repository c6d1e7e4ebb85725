/** Mistakes that are planted to see whether the simulation finds them: a text of a source, and what stands there instead. */
export interface Planted {
  readonly name: string;
  /** Below `src/`. */
  readonly file: string;
  /** Stands there once. */
  readonly text: string;
  readonly instead: string;
  /** What the failure says. */
  readonly found: RegExp;
  /** Found by fleets. */
  readonly isOfFleet?: boolean;
}

const COMMITTED = /bytes are committed, and [0-9]+ safely in the mirror/;
const NEVER_COMPLETE = /^[0-9]+: after [0-9]+ minutes: /;
const NOT_FOLLOWED = /no agent follows it [0-9]+ ms later/;
const SIGN_IN = /a sign-in although no call was answered/;
const IN_A_PAUSE = /began in a pause that the service asked for/;

export const PLANTED: readonly Planted[] = [
  {
    name: 'a commit before the flush',
    file: 'agent/live/mirror/mirror.ts',
    text: 'await this.#named(() => this.#file.datasync());',
    instead: '',
    found: COMMITTED,
  },
  {
    name: 'a committed offset past the mirror',
    file: 'agent/live/mirror/live-file.ts',
    text: 'const position = this.#compared;',
    instead: 'const position = this.#compared + 1;',
    found: COMMITTED,
  },
  {
    name: 'a failed run that is not planned again',
    file: 'agent/loop/followed-job.ts',
    text: "if (kind === 'pass' || this.isFollowed) due.plan(kind, delayMs);",
    instead: '',
    found: NEVER_COMPLETE,
  },
  {
    name: 'a lost wake-up: a timer that fires before others is not set',
    file: 'agent/loop/scheduler.ts',
    text: 'this.#turn?.callback();\n    this.#arm();',
    instead: 'this.#turn?.callback();',
    found: /the scheduler made no progress/,
  },
  {
    name: 'a turn that is not reported',
    file: 'agent/loop/scheduler.ts',
    text: 'this.#turn?.callback();',
    instead: '',
    found: /the scheduler made no progress/,
  },
  {
    name: 'a back-off that never ends',
    file: 'back-off.ts',
    text: 'Math.min(maxMs, firstMs * 2 ** this.#failures)',
    instead: '(this.#failures > 3 ? Number.POSITIVE_INFINITY : firstMs)',
    found: NEVER_COMPLETE,
  },
  {
    name: 'a place among the calls that is not given back',
    file: 'agent/calls.ts',
    text: 'release(made);',
    instead: '',
    found: NEVER_COMPLETE,
  },
  {
    name: 'a place for long calls that is not given back',
    file: 'agent/calls.ts',
    text: 'if (isLong(lane)) this.#runningLong -= 1;',
    instead: '',
    found: /the scheduler made no progress/,
  },
  {
    name: 'a pause of the service that is not kept',
    file: 'agent/server-share.ts',
    text: 'this.#pausedUntil = until;',
    instead: '',
    found: IN_A_PAUSE,
  },
  {
    name: 'a call repeated after a sign-in, within a pause',
    file: 'remote/session-calls.ts',
    text: 'await untilAllowed(signal);',
    instead: '',
    found: IN_A_PAUSE,
  },
  {
    name: 'a budget that is not charged',
    file: 'agent/server-share.ts',
    text: 'this.#charge(this.#costOfRequestMs, 0, MAX_FIXED_CREDIT_MS);',
    instead: '{}',
    found: /calls in a minute, [0-9]+ are allowed/,
  },
  {
    name: 'a secret in an error',
    file: 'remote/session-calls.ts',
    text: 'secrets.hideIn(asJobtailError(thrown))',
    instead: 'asJobtailError(thrown)',
    found: /a secret is logged/,
  },
  {
    name: 'a timer of the machine',
    file: 'store/store.ts',
    text: 'this.#cancel = this.#options.timer(withinMs, () => this.flush());',
    instead: 'setTimeout(() => this.flush(), withinMs);',
    found: /not of the injected clock/,
  },
  {
    name: 'an answer that is not released',
    file: 'agent/poll/file-poll.ts',
    text: 'part?.content.release()',
    instead: 'part?.content.length',
    found: /texts, at most/,
  },
  {
    name: 'an error that is not cleared',
    file: 'agent/loop/job-runs.ts',
    text: 'for (const kind of kinds) this.#failing.delete(kind);',
    instead: '',
    found: NEVER_COMPLETE,
  },
  {
    name: 'polls as fast as they can be',
    file: 'agent/loop/pace.ts',
    text: 'return Math.max(intervalMs - spentMs, intervalMs / 2);',
    instead: 'return spentMs * 0;',
    found: /events at the moment/,
  },
  {
    name: 'intervals of quiet polls that do not grow',
    file: 'agent/loop/pace.ts',
    text: ': Math.min(maxIntervalMs, Math.max(minIntervalMs, this.#intervalMs * STRETCH));',
    instead: ': minIntervalMs;',
    found: /is made twice in a row/,
  },
  {
    name: 'a delivery that is sent again and again',
    file: 'notify/deliveries.ts',
    text: 'store.transaction(() => store.outbox.remove(row));',
    instead: '',
    found: /the event [0-9a-f-]+ was delivered [0-9]+ times/,
  },
  {
    name: 'a file that is not closed',
    file: 'agent/poll/file-poll.ts',
    text: 'await this.#guardEnd(async () => this.mirror?.close());',
    instead: '',
    found: /open(?: files)?(?:, at most|$)|: not over after/m,
  },
  {
    name: 'a timer that outlasts a stop',
    file: 'notify/notifications.ts',
    text: 'this.#isStopped = true;\n    this.#cancelTick();',
    instead: 'this.#isStopped = true;',
    found: /a stop leaves [0-9]+ timers/,
  },
  {
    name: 'a sign-in for each call',
    file: 'remote/signin/sign-in.ts',
    text: "if (state.kind === 'open') return state.grant;",
    instead: "if (state.kind === 'open') return this.#wait(this.#begin(CLOSED), signal);",
    found: SIGN_IN,
  },
  {
    name: 'a late report of an old sign-in: a call reports its session as lost, and a later one is dropped',
    file: 'remote/signin/sign-in.ts',
    text: 'lost: (state, { grant }) => (state.grant === grant ? CLOSED : state),',
    instead: 'lost: () => CLOSED,',
    found: SIGN_IN,
  },
  {
    name: 'a lease that is believed too long',
    file: 'fleet/lease.ts',
    text: 'const forMs = this.#leaseMs - MARGIN_MS;',
    instead: 'const forMs = this.#leaseMs * 4;',
    found: /writes .*, and so may/,
    isOfFleet: true,
  },
  {
    name: 'a lost wake-up of a fleet: a notification that is not processed',
    file: 'fleet/wakeups.ts',
    text: 'this.#isReportedAgain = true;',
    instead: '',
    found: NOT_FOLLOWED,
    isOfFleet: true,
  },
  {
    name: 'a job that is handed off, and offered to no agent',
    file: 'fleet/claims.ts',
    text: "if (how === 'handed-over') for (const jobId of ids) await this.#queue.send(sql, jobId);",
    instead: '',
    found: NOT_FOLLOWED,
    isOfFleet: true,
  },
  {
    name: 'a takeover that does not read again what it has of an earlier lease',
    file: 'fleet/handover.ts',
    text: 'here.get(jobId) === attempt;',
    instead: 'here.has(jobId);',
    found: /does not continue from what the former one wrote/,
    isOfFleet: true,
  },
];
