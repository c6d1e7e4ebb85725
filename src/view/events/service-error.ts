/** The failure of the service as a whole, from the failures of the jobs that the agent follows. */
import { ERROR_POLICIES } from '../../errors.ts';
import type { JobRow, StoredError } from '../../store/rows.ts';
import type { ShownError } from '../contract/addresses.ts';

type Followed = Pick<JobRow, 'state' | 'polledAt' | 'error'>;

const isOfService = ({ code }: StoredError) => ERROR_POLICIES[code].isOfService;

/** A failure with its policy, as the page needs it. */
export function shownError(error: StoredError | null): ShownError | null {
  return error === null ? null : { ...error, isOfService: isOfService(error) };
}

/** The first failure since the service last answered a poll of any job; null while it answers one of them. */
export function serviceErrorOf(jobs: readonly Followed[]): ShownError | null {
  const followed = jobs.filter(({ state }) => state === 'watched' || state === 'ending');
  const errors = followed.flatMap(({ error }) => (error !== null && isOfService(error) ? [error] : []));
  const answered = followed.filter(({ error }) => error === null || !isOfService(error));
  const answeredAt = Math.max(0, ...answered.map(({ polledAt }) => polledAt ?? 0));
  // A job that failed before the last answer has a failure of its own, unless others failed since.
  const [first] = errors.filter(({ since }) => since >= answeredAt).sort((a, b) => a.since - b.since);
  if (first === undefined) return null;
  const retryAt = Math.min(...errors.map((error) => error.retryAt ?? Number.POSITIVE_INFINITY));
  const { retryAt: _, ...error } = first;
  return { ...error, ...(Number.isFinite(retryAt) ? { retryAt } : {}), isOfService: true };
}
