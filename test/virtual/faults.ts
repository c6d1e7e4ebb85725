/** What goes wrong with the simulated service: from one moment to another, or until it is healed. */
import type { ErrorCode } from '../../src/errors.ts';
import type { JobId } from '../../src/job.ts';
import type { Operation } from '../../src/operations.ts';

/** What a call is for; of a file that is downloaded, whether it is a live one. `all`: of a fault, any call. */
export type FaultOf = 'all' | 'list' | 'report' | 'parts' | 'listing' | 'raw' | 'result' | 'revoke';

export interface Fault {
  readonly of?: FaultOf;
  /** What the call ends with. `silent`: no answer until its time limit. `cut`: a part of the answer. */
  readonly code: ErrorCode | 'silent' | 'slow' | 'cut';
  /** Left out: all operations, all jobs, all files. */
  readonly operations?: readonly Operation[];
  readonly jobId?: JobId;
  /** A listed name, or the key of a live file. */
  readonly file?: string;
  readonly retryAfterMs?: number;
  /** In [0, 1]: of the calls it is for. */
  readonly share: number;
  readonly until: number;
}

/** Codes with which a service answers, or fails to; each is one of the table in src/errors.ts. */
export const CODES = [
  'unreachable',
  'tls',
  'timeout',
  'interrupted',
  'rate-limited',
  'unavailable',
  'redirected',
  'http-status',
  'request-too-long',
  'answer-too-large',
  'malformed',
  'unexpected-answer',
  'fault',
  'not-found',
  'session-lost',
] as const satisfies readonly ErrorCode[];

const STATUS: Partial<Record<Fault['code'], number>> = {
  'rate-limited': 429,
  unavailable: 503,
  redirected: 302,
  'http-status': 500,
  'session-lost': 401,
};

/** With none of these codes does an answer come. */
const NO_ANSWER: readonly Fault['code'][] = ['unreachable', 'tls', 'timeout', 'interrupted', 'silent'];

/** The status of the answer, or undefined if none comes. */
export function statusOf({ code }: Pick<Fault, 'code'>): number | undefined {
  return NO_ANSWER.includes(code) ? undefined : (STATUS[code] ?? 200);
}

/** Whether no call at all is answered, so that nobody can sign in. */
export const isOfAll = ({ of = 'all', operations, jobId, share }: Fault) =>
  of === 'all' && operations === undefined && jobId === undefined && share === 1;

/** Whether a fault is for a call. */
export function isFor(
  fault: Fault,
  call: { of: FaultOf; operation: Operation; jobId: JobId | undefined; files: readonly string[] },
) {
  const { of = 'all', operations, jobId, file } = fault;
  if (of !== 'all' && of !== call.of) return false;
  if (operations !== undefined && !operations.includes(call.operation)) return false;
  if (jobId !== undefined && jobId !== call.jobId) return false;
  return file === undefined || call.files.includes(file);
}
