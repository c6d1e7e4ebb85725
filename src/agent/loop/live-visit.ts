/** One visit of the live files of a job: it waits for its turn among the calls, and then polls. */
import type { JobId } from '../../job.ts';
import { type Calls, QueuedRemote, Turn } from '../calls.ts';
import { type Polled, pollJob } from '../poll/poll.ts';
import type { PollContext } from '../poll/poll-context.ts';
import type { Clock, Remote } from '../ports.ts';

export interface LiveVisitOptions {
  readonly calls: Calls;
  readonly remote: Remote;
  readonly poll: PollContext;
  readonly clock: Clock;
  /** The job answered slowly, or not at all, before: it must not delay the others. */
  readonly patient: boolean;
  readonly signal: AbortSignal;
}

export interface LiveVisit {
  readonly polled: Polled;
  /** When its turn came, by the clock that only goes forward, in milliseconds; and how long it took from there. */
  readonly startedAt: number;
  readonly tookMs: number;
}

/** Throws if the service gave nothing for the job; what was appended is committed. */
export async function visitLive(jobId: JobId, options: LiveVisitOptions): Promise<LiveVisit> {
  const { calls, poll, clock, patient, signal } = options;
  const turn = new Turn(calls, patient ? 'patient' : 'live', signal);
  const remote = new QueuedRemote(options.remote, turn, patient ? 'patient' : 'begun');
  let startedAt = clock.monotonic();
  const begin = async () => {
    await turn.take();
    startedAt = clock.monotonic();
  };
  const polled = await pollJob(jobId, poll, { remote, begin, final: false, signal }).finally(() => turn.end());
  return { polled, startedAt, tookMs: clock.monotonic() - startedAt };
}
