/** What the engine reports: to the log, which people read, and to those who count it. */
import type { EventEmitter } from 'node:events';
import type { LiveFileEvents } from '../agent/live/mirror/mirror.ts';
import type { JobEvents } from '../agent/loop/context.ts';
import type { Log } from '../agent/ports/host.ts';
import type { DownloadKind } from '../agent/results/place/place-files.ts';
import type { ResultEvents } from '../agent/results/results.ts';
import { MISMATCH_EVENTS, type MismatchKind } from '../mismatch.ts';
import { printable } from '../printable.ts';
import type { CallEvent } from '../remote/session-calls.ts';
import type { SignInEvent } from '../remote/signin/sign-in.ts';
import type { FoundBy } from '../store/rows.ts';

/** What the agent does, for its health, the charts of the view and the metrics. */
export type Observer = EventEmitter<{
  call: [event: CallEvent];
  /** The header of a response arrived. */
  answered: [workMs: number, isPause: boolean];
  signIn: [event: SignInEvent];
  appended: [bytes: number];
  fetched: [bytes: number, kind: DownloadKind];
  tasksFound: [tasks: number, by: FoundBy];
  mismatch: [kind: MismatchKind];
  jobStatesRead: [outcome: 'ok' | 'failed'];
  reloaded: [outcome: 'taken' | 'refused'];
}>;

interface Listeners {
  readonly log: Log;
  readonly observer?: Observer | undefined;
}

const MAX_NAMED = 3;

export const jobEvents = ({ observer }: Listeners): JobEvents => ({
  onAppended: (bytes) => observer?.emit('appended', bytes),
  onTasksFound: (tasks, by) => observer?.emit('tasksFound', tasks, by),
  onJobStates: (outcome) => observer?.emit('jobStatesRead', outcome),
});

export function liveFileEvents({ log, observer }: Listeners, monotonic: () => number): LiveFileEvents {
  const countOfRewrites = everyTenMinutes(monotonic);
  let isUnsteady = false;
  return {
    onMismatch({ jobId, taskId, file }, { kind, at, generation, reason }) {
      observer?.emit('mismatch', kind);
      const isOfRemote = kind === 'truncated' || kind === 'rewritten';
      // A progress file is rewritten all the time: of a job, the first line, then one in ten minutes, with their number.
      const count = isOfRemote && file === 'progress' ? countOfRewrites(jobId) : 1;
      const fields = { jobId, taskId, file, offset: at, generation, reason, ...(count > 1 && { count }) };
      if (count > 0) log[isOfRemote ? 'info' : 'warn'](fields, MISMATCH_EVENTS[kind]);
    },
    onUnsteady({ jobId, taskId, file }) {
      const hint = 'mount it with inode numbers of the server, or set mirror.directory to another file system';
      if (!isUnsteady) log.warn({ jobId, taskId, file, hint }, 'inodes or times of mirrors change by themselves');
      isUnsteady = true;
    },
  };
}

const PERIOD_MS = 10 * 60_000;

/** Of an event of a key, the number to log now: 1 for the first one, then a sum each ten minutes; 0 in between. */
function everyTenMinutes(monotonic: () => number): (key: string) => number {
  /** By key: when the last line was logged, and the number of events since. */
  const keys = new Map<string, { readonly loggedAt: number; readonly count: number }>();
  return (key) => {
    const now = monotonic();
    const { loggedAt, count } = keys.get(key) ?? { loggedAt: Number.NEGATIVE_INFINITY, count: 0 };
    const isDue = now - loggedAt >= PERIOD_MS;
    if (isDue) for (const [old, last] of keys) if (last.loggedAt < now - 2 * PERIOD_MS) keys.delete(old);
    keys.set(key, isDue ? { loggedAt: now, count: 0 } : { loggedAt, count: count + 1 });
    return isDue ? count + 1 : 0;
  };
}

/** `isServiceNews`: whether a transfer by the service instead of a direct one is an exception. */
export const resultEvents = ({ log, observer }: Listeners, isServiceNews: boolean): ResultEvents => ({
  onFetched: (jobId, name, bytes, kind) => {
    observer?.emit('fetched', bytes, kind);
    if (kind !== 'same') log.debug({ jobId, file: printable(name), bytes }, 'result downloaded');
  },
  onRefused: (jobId, { count, fresh }) => {
    const refused = fresh.slice(0, MAX_NAMED).map(({ name, reason }) => `${name}: ${reason}`);
    log.warn({ jobId, count, refused, hint: `agent status ${jobId} shows the reasons` }, 'results refused');
  },
  onFallback: (jobId, reason) =>
    log[isServiceNews ? 'warn' : 'info']({ jobId, err: reason }, 'results not transferred directly'),
});
