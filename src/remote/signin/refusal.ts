/** What an answer that is no success means: the error for each status. */
import { type ErrorCode, JobtailError } from '../../errors.ts';
import type { Secrets } from '../../redact.ts';
import { problemOf } from '../problem.ts';
import { MEANING_OF_STATUS, type StatusMeaning } from '../wrong-answers.ts';

export interface Refusal {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  /** The body. */
  readonly text: string;
}

export interface RefusalContext {
  readonly url: string;
  /** What nothing of may be shown. */
  readonly secrets: Secrets;
  /** `the password in the file /etc/agent/password` */
  readonly secretPlace: string;
}

/** What a refusal means stands at its beginning. */
const MAX_EXAMINED = 2048;

interface Meaning extends StatusMeaning {
  readonly said: string;
}

const REFUSED: Meaning = {
  code: 'sign-in-refused',
  said: 'the sign-in was refused',
  hint: 'look at auth.method, auth.username and',
};
const NO_SUCH_OPERATION: Meaning = {
  code: 'http-status',
  said: 'there is no such sign-in operation',
  hint: 'look at service.baseUrl; servers that differ need auth.path or auth.operation',
};
const REDIRECTED: Meaning = {
  code: 'redirected',
  said: 'the sign-in was sent elsewhere, which is not followed',
  hint: 'set service.baseUrl to the final address (https instead of http, for example)',
};
const OTHER: Meaning = {
  code: 'http-status',
  said: 'the sign-in failed on the server',
  hint: 'look at auth.method and auth.path; the log of the service may say more',
};
const OWN_MEANINGS: Readonly<Record<number, Meaning>> = {
  400: REFUSED,
  401: REFUSED,
  403: REFUSED,
  404: NO_SUCH_OPERATION,
  405: NO_SUCH_OPERATION,
};
const SAID: Partial<Record<ErrorCode, string>> = {
  'request-too-long': 'the sign-in is too long for the server',
  'rate-limited': 'the server takes no more sign-ins for now',
  unavailable: 'the sign-in is out of order',
};

/** What some releases say of a wrong password with a status of another meaning (docs/rest.md 4.3). */
const WRONG_SECRET =
  /\b(?:wrong|invalid|incorrect|bad)\b.{0,40}\b(?:password|credentials?|token|user ?name)\b|\bnot successful\b/i;

function meaningOf(status: number, words: string): Meaning {
  if (status >= 500 && WRONG_SECRET.test(words)) return REFUSED;
  const shared = MEANING_OF_STATUS[status];
  if (shared !== undefined) return { ...shared, said: SAID[shared.code] ?? OTHER.said };
  return OWN_MEANINGS[status] ?? (status >= 300 && status < 400 ? REDIRECTED : OTHER);
}

/** The error for an answer whose status is not 2xx. The server's own words are quoted, without secrets and cut. */
export function refusalOf({ status, retryAfterMs, text }: Refusal, context: RefusalContext): JobtailError {
  const said = problemOf(text).words;
  const meaning = meaningOf(status, said.slice(0, MAX_EXAMINED));
  const words = context.secrets.safeText(said);
  const quote = words === '' ? '' : `: ${words}`;
  return new JobtailError(meaning.code, `${meaning.said} (status ${status} of ${context.url})${quote}`, {
    hint: meaning === REFUSED ? `${meaning.hint} ${context.secretPlace}` : meaning.hint,
    retryAfterMs,
  });
}
