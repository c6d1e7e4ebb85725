/** A service that answers, but not with what was asked for: what is the same in whatever form it answers. */
import { type ErrorCode, JobtailError } from '../errors.ts';

/** The answer breaks the rules of its form; `what` says where. */
export function malformed(what: string): JobtailError {
  return new JobtailError('malformed', `the answer is damaged: ${what}`, {
    hint: 'if it stays so, the service or a proxy in front of it sends broken answers; show this to its operator',
  });
}

/** What an answer that is no success says of the request, and what to do. */
export interface StatusMeaning {
  readonly code: ErrorCode;
  readonly hint: string;
}

const TOO_LONG: StatusMeaning = { code: 'request-too-long', hint: 'the service takes only shorter requests' };
const DOWN: StatusMeaning = {
  code: 'unavailable',
  hint: 'wait, or tell those who run the service: it is down or overloaded, or the proxy in front of it does not reach it',
};

/** HTTP statuses that mean the same whatever was asked for. */
export const MEANING_OF_STATUS: Readonly<Record<number, StatusMeaning>> = {
  413: TOO_LONG,
  414: TOO_LONG,
  429: { code: 'rate-limited', hint: 'lower service.requestsPerMinute if this happens often' },
  502: DOWN,
  503: DOWN,
  504: DOWN,
};
