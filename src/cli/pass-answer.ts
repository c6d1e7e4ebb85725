/** What an agent answers to a command that asked for a pass. */
import type { PassSummary } from '../agent/pass/complete-pass.ts';
import type { PassAnswer } from '../agent/pass/job-end.ts';
import { ERROR_POLICIES, type ErrorCode, JobtailError } from '../errors.ts';

/** @throws JobtailError what the pass ended with */
export function summaryOf(answer: PassAnswer): PassSummary {
  if ('summary' in answer) return answer.summary;
  const code = answer.code !== undefined && answer.code in ERROR_POLICIES ? (answer.code as ErrorCode) : 'job-unknown';
  throw new JobtailError(code, answer.error, answer.hint === undefined ? {} : { hint: answer.hint });
}
