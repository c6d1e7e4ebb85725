/** How jobs ended: the JSON and the exit code of `agent wait`. */
import { EXIT } from '../../errors.ts';
import { isOver, type JobId } from '../../job.ts';
import { lossOf } from '../../search/mirrors.ts';
import type { JobReport } from './status-report.ts';

/** The first that a job has is the result. unproven: a file is not proven, or the end of the job is unknown. */
const EXIT_CODES = {
  unproven: EXIT.failed,
  failed: EXIT.jobFailed,
  canceled: EXIT.jobCanceled,
  finished: EXIT.ok,
} as const;

type WaitOutcome = keyof typeof EXIT_CODES;

export interface Ended {
  readonly outcome: WaitOutcome;
  readonly unproven: readonly string[];
  readonly job: JobReport;
}

/** The same, if mirrors on this machine that were removed or cut since are not verified. */
function withoutLost(job: JobReport): JobReport {
  const losses = new Map(job.files.map((file) => [file, file.verified ? lossOf(job.jobId, file) : undefined]));
  const reasons = [...losses.values()].filter((loss) => loss !== undefined);
  const files = job.files.map((file) => (losses.get(file) === undefined ? file : { ...file, verified: false }));
  return { ...job, files, unproven: job.unproven && [...reasons, ...job.unproven] };
}

/** Undefined while the agent works on the job. `hasMirrors`: they are on this machine, and are looked at. */
export function endOf(reported: JobReport, { hasMirrors }: { readonly hasMirrors: boolean }): Ended | undefined {
  if (!isOver(reported)) return undefined;
  const job = hasMirrors ? withoutLost(reported) : reported;
  const ends: Readonly<Record<string, WaitOutcome>> = { Finished: 'finished', Failed: 'failed', Canceled: 'canceled' };
  const end = ends[job.jobState ?? ''];
  const isSettled = job.state === 'settled';
  const unproven = isSettled ? [...(job.unproven ?? [])] : ['it is not followed any more'];
  if (end === undefined) unproven.push('it is not reported how the job ended');
  if (end === undefined || !isSettled) return { job, outcome: 'unproven', unproven };
  return { job, outcome: end === 'finished' && unproven.length > 0 ? 'unproven' : end, unproven };
}

export function exitCodeOf(ended: readonly Ended[]): number {
  const [worst] = Object.entries(EXIT_CODES).filter(([outcome]) => ended.some((one) => one.outcome === outcome));
  return worst?.[1] ?? EXIT.ok;
}

export function waitReport(ended: readonly Ended[], timedOut: boolean, waitingFor: readonly JobId[]) {
  const jobs = ended.map(({ outcome, unproven, job }) => ({
    jobId: job.jobId,
    outcome,
    jobState: job.jobState,
    state: job.state,
    unproven,
    files: job.files.length,
    results: job.results.synced,
  }));
  return { exitCode: timedOut ? EXIT.timeIsUp : exitCodeOf(ended), timedOut, jobs, waitingFor };
}
