/** The error for each failed response to a sign-in. */
import { type ErrorCode, JobtailError } from '../../errors.ts';
import type { Secrets } from '../../redact.ts';
import { MEANING_OF_STATUS, type Problem, problemOf, type StatusMeaning, TOO_LONG } from '../wrong-answers.ts';

export interface Refusal {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly text: string;
}

export interface RefusalContext {
  readonly url: string;
  readonly secrets: Secrets;
  readonly secretPlace: string;
}

/** The meaning of a refusal is at its start. */
const MAX_EXAMINED = 2048;

interface Meaning extends StatusMeaning {
  readonly text: string;
}

const REFUSED: Meaning = {
  code: 'sign-in-refused',
  text: 'the sign-in was refused',
  hint: 'check auth.method, auth.username and',
};
const NO_SUCH_OPERATION: Meaning = {
  code: 'http-status',
  text: 'there is no such sign-in operation',
  hint: 'check service.baseUrl; servers that differ need auth.path or auth.operation',
};
const REDIRECTED: Meaning = {
  code: 'redirected',
  text: 'the server redirects the sign-in, redirect not followed',
  hint: 'set service.baseUrl to the final address (https instead of http, for example)',
};
const NOT_THE_SERVICE: Meaning = {
  code: 'http-status',
  text: 'a proxy or another server answered the sign-in with a page of its own',
  hint: 'check service.baseUrl and service.proxy, and ask those who run the proxy',
};
const TOO_LONG_FOR_IT: Meaning = { ...TOO_LONG, text: 'the sign-in is too long for the server' };
const OTHER: Meaning = {
  code: 'http-status',
  text: 'the sign-in failed on the server',
  hint: 'check auth.method and auth.path, and the log of the service',
};
/** V4.2 and V4.3 answer an unknown user like any internal fault (docs/dev/rest.md 4.3). */
export const FAULT_OR_UNKNOWN_USER =
  'check auth.username first: some releases respond like this to an unknown user; otherwise the service failed, and its log has the reason';
const AMBIGUOUS: Meaning = {
  code: 'http-status',
  text: 'the sign-in failed on the server, or the user is unknown there',
  hint: FAULT_OR_UNKNOWN_USER,
};
const OWN_MEANINGS: Readonly<Record<number, Meaning>> = {
  400: REFUSED,
  401: REFUSED,
  403: REFUSED,
  404: NO_SUCH_OPERATION,
  405: NO_SUCH_OPERATION,
};
const REFUSED_WORDS: Partial<Record<ErrorCode, string>> = {
  'request-too-long': TOO_LONG_FOR_IT.text,
  'rate-limited': 'the server takes no more sign-ins for now',
  unavailable: 'the sign-in is unavailable',
};

/** The words for a wrong password where the status means something else (docs/dev/rest.md 4.3). */
const WRONG_SECRET =
  /\b(?:wrong|invalid|incorrect|bad)\b.{0,40}\b(?:password|credentials?|token|user ?name)\b|\bnot successful\b/i;

/** The response of the service to anything unexpected. */
const UNSPECIFIC = /^\s*problem occur?red\b/i;

/** Titles for a failed sign-in (docs/dev/rest.md 4.3); "Problem" alone is any fault. */
const TITLE_OF_REFUSAL = /^External (?:Service Error|Problem)$|\bauthentication\b/i;

/** The status page of releases up to V3.1, here for a request that is too long (docs/dev/rest.md 2.3). */
const STATUS_PAGE = /^Status Code: 400\b/;
const TOO_LONG_TEXT = /\brequest body too large\b/i;

function meaningOf(status: number, { words, title, isPage }: Problem): Meaning {
  const beginning = words.slice(0, MAX_EXAMINED);
  if (status >= 500 && WRONG_SECRET.test(beginning)) return REFUSED;
  if (status === 500 && UNSPECIFIC.test(beginning)) return AMBIGUOUS;
  if ((status === 500 || status === 502) && TITLE_OF_REFUSAL.test(title)) return REFUSED;
  if (status === 400 && (STATUS_PAGE.test(beginning) || TOO_LONG_TEXT.test(beginning))) return TOO_LONG_FOR_IT;
  if (isPage && OWN_MEANINGS[status] === REFUSED) return NOT_THE_SERVICE;
  const shared = MEANING_OF_STATUS[status];
  if (shared !== undefined) return { ...shared, text: REFUSED_WORDS[shared.code] ?? OTHER.text };
  return OWN_MEANINGS[status] ?? (status >= 300 && status < 400 ? REDIRECTED : OTHER);
}

/** The error for a status other than 2xx. Quotes the server, cut and without secrets. */
export function refusalOf({ status, retryAfterMs, text }: Refusal, context: RefusalContext): JobtailError {
  const problem = problemOf(text);
  const meaning = meaningOf(status, problem);
  const words = context.secrets.safeText(problem.words);
  const quote = words === '' ? '' : `: ${words}`;
  return new JobtailError(meaning.code, `${meaning.text} (status ${status} of ${context.url})${quote}`, {
    hint: meaning === REFUSED ? `${meaning.hint} ${context.secretPlace}` : meaning.hint,
    retryAfterMs,
  });
}
