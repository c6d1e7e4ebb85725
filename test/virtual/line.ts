/** The line between one agent and the service: how many calls are on it, how many were, and whether they were allowed. */
import type { IntervalLimits } from '../../src/agent/schedule/pace.ts';
import type { ServerShare } from '../../src/agent/server-share.ts';
import type { JobId } from '../../src/job.ts';
import { BEHIND_EVERY_END } from '../../src/job.ts';
import type { Clock } from '../../src/system/clock.ts';
import type { Call } from './service.ts';

interface LineOptions {
  readonly clock: Clock;
  readonly share: ServerShare;
  readonly concurrency: number;
  readonly requestsPerMinute: number | null;
  /** Of the polls of a job; undefined where commands come from other machines, which nothing here shows. */
  readonly intervals: IntervalLimits | undefined;
  /** Whether calls need no event just before: a poll may wait for the disk, a command compares a file with several. */
  readonly isExplained: () => boolean;
  /** How long the service works on a call. */
  readonly workMs: number;
  readonly offend: (what: string) => void;
}

const MINUTE_MS = 60_000;
interface Asked {
  readonly what: string;
  readonly begunAt: number;
  /** Infinite if it was not, or not with all of it. */
  answeredAt: number;
  /** Polls in a row that asked for the same and got the same, and that nothing explains. */
  readonly times: number;
  readonly isRepeat: boolean;
  /** It may be made again at once. */
  mayFollow: boolean;
}

/** The same call is not made again within this time, unless something else happened meanwhile. */
const AGAIN_MS = 400;
/** A call that is not answered for this time may hang. */
const HANGS_AFTER_MS = 4_000;
/** An event explains calls that begin so much later, or after so many others, and those that wait for one under way. */
const EXPLAINED_MS = 2_000;
const EXPLAINED_CALLS = 24;
/** Where calls take so long, results do not wait for the first poll until it ends: each may fetch the same file once. */
const SLOW_MS = 100;
/** What changed is polled often until it is decided: raw bytes decide after half a minute. */
const DECIDED_MS = 45_000;
/** A poll without news makes the interval longer by this. */
const STRETCH = 1.5;
/** Of an interval, from one answer to the next call: half of it after a slow answer, less jitter. */
const SHARE = 0.4;
/** Timers that fire late are made up for. */
const SPARE_CALLS = 5;

export class Line {
  /** No call may begin before that. */
  pausedUntil = Number.NEGATIVE_INFINITY;
  running = 0;
  /** The last call for each job: what it asked for, and when its answer was whole. */
  readonly #last = new Map<JobId | undefined, Asked>();
  readonly #onTheirWay = new Set<Asked>();
  #explainedAt = Number.NEGATIVE_INFINITY;
  /** What the last poll of each job got, and since when. */
  readonly #got = new Map<JobId, { readonly what: string; readonly since: number }>();
  readonly #options: LineOptions;
  /** When the calls of the last minute began. */
  #begun: number[] = [];
  /** When a call was answered that its session is lost: it is repeated, and takes no other turn. */
  #lost: number[] = [];

  constructor(options: LineOptions) {
    this.#options = options;
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  get share(): ServerShare {
    return this.#options.share;
  }

  /** Something happened that explains calls. */
  explain(): void {
    this.#explainedAt = this.clock.monotonic();
  }

  /** The session of a call is lost. */
  lost(): void {
    const now = this.clock.monotonic();
    this.#lost = this.#lost.filter((at) => at > now - MINUTE_MS);
    this.#lost.push(now);
  }

  /** A poll of a job gets this. */
  got(jobId: JobId, what: string): void {
    if (this.#got.get(jobId)?.what !== what) this.#got.set(jobId, { what, since: this.clock.monotonic() });
  }

  /** A file that is empty equals every other one: after a comparison with it, the results of the job fetch it. */
  gotEmpty(jobId: JobId): void {
    const last = this.#last.get(jobId);
    if (last !== undefined) last.mayFollow = !last.isRepeat;
  }

  /** `isQuiet`: the job goes on, so that nothing but its files decides when they are polled. */
  begun({ operation, jobId, files }: Call, isQuiet: boolean): Asked {
    const { clock, concurrency, requestsPerMinute, offend } = this.#options;
    const now = clock.monotonic();
    this.running += 1;
    // Calls that hang count for no limit, and one short call finds out whether others work (src/agent/hanging-calls.ts).
    const hanging = [...this.#onTheirWay].filter(({ begunAt }) => now - begunAt >= HANGS_AFTER_MS).length;
    // A call whose session was lost is repeated: for the agent, it is the same call.
    const repeated = this.#lost.filter((at) => at > now - HANGS_AFTER_MS).length;
    // Keys are revoked beside all other calls.
    const revoking = [operation, ...[...this.#onTheirWay].map((one) => one.what)].filter((one) =>
      one.startsWith('End'),
    );
    const allowed = concurrency + repeated + revoking.length + (hanging === 0 ? 0 : hanging + 1);
    if (this.running > allowed) offend(`${this.running} calls at a time, ${allowed} are allowed`);
    if (now < this.pausedUntil) offend(`${operation} began in a pause that the service asked for`);
    const last = this.#last.get(jobId);
    const what = `${operation} ${files.join(' ')}`;
    const newsAt = jobId === undefined ? now : (this.#got.get(jobId)?.since ?? now);
    const isCalm = isQuiet && now - Math.max(newsAt, this.#explainedAt) > DECIDED_MS;
    const isRepeat = last?.what === what;
    const times = isCalm && isRepeat && last.answeredAt > Number.NEGATIVE_INFINITY ? last.times + 1 : 0;
    const againMs = now - (last?.answeredAt ?? Number.NEGATIVE_INFINITY);
    const isSlow = this.#options.workMs >= SLOW_MS;
    const asked: Asked = {
      what,
      begunAt: now,
      answeredAt: Number.NEGATIVE_INFINITY,
      times,
      isRepeat,
      mayFollow: isSlow && operation === 'DownloadFileFromCluster' && !isRepeat,
    };
    // A listing is of the search for tasks, of the results, or of a complete pass, each with one of its own; a report of
    // one job is of the round of job states, or of a pass.
    const isListing = operation === 'ListChangedFilesForJob' || operation === 'GetCurrentInfoForJob';
    // Of an event while a call is under way, one more call is the answer, however long that call takes.
    const isSince = this.#explainedAt >= (last?.begunAt ?? now);
    const explainedMs = Math.max(EXPLAINED_MS, EXPLAINED_CALLS * this.#options.workMs);
    const isExplained = isListing || isSince || this.#options.isExplained() || now - this.#explainedAt < explainedMs;
    const isPoll = operation === 'DownloadPartsOfJobFilesFromCluster';
    const leastMs = Math.max(AGAIN_MS, isPoll ? SHARE * this.#intervalMs(times) : 0);
    if (!isExplained && isRepeat && !last.mayFollow && againMs < leastMs)
      offend(`${jobId ?? 'all jobs'}: ${what} is made twice in a row, after ${againMs} ms, ${times} times`);
    // The short call beside calls that hang is no poll of its job: a search for tasks may ask for the same.
    const isShort = hanging > 0 && files.at(-1) === `from ${BEHIND_EVERY_END}`;
    if (!isShort) this.#last.set(jobId, asked);
    this.#onTheirWay.add(asked);
    if (requestsPerMinute === null) return asked;
    this.#begun = this.#begun.filter((at) => at > now - MINUTE_MS);
    this.#begun.push(now);
    this.#lost = this.#lost.filter((at) => at > now - MINUTE_MS);
    if (this.#begun.length > requestsPerMinute + SPARE_CALLS + this.#lost.length)
      offend(`${this.#begun.length} calls in a minute, ${requestsPerMinute} are allowed`);
    return asked;
  }

  /** The interval after so many polls that brought no news. */
  #intervalMs(times: number): number {
    const { minIntervalMs, maxIntervalMs } = this.#options.intervals ?? { minIntervalMs: 0, maxIntervalMs: 0 };
    return Math.min(maxIntervalMs, minIntervalMs * STRETCH ** times);
  }

  ended(asked: Asked, isAnswered: boolean): void {
    this.running -= 1;
    this.#onTheirWay.delete(asked);
    if (isAnswered) asked.answeredAt = this.clock.monotonic();
  }
}
