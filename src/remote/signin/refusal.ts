/** The error for each failed response to a sign-in. */
import { JobtailError } from '../../errors.ts';
import type { Secrets } from '../../redact.ts';
import type { HttpStatus } from '../http/http-client.ts';
import { type Problem, problemOf, startOf } from '../problem.ts';
import { MEANING_OF_STATUS, type Meaning, TOO_LONG } from '../refusals.ts';
import { FAILURES, isTooLong, REFUSED_SIGN_IN_TITLE } from '../rest/releases.ts';

interface SignInMeaning extends Meaning {
  readonly text: string;
}

const FAILED = 'the sign-in failed on the server';
const REFUSED: SignInMeaning = {
  code: 'sign-in-refused',
  text: 'the sign-in was refused',
  hint: 'check auth.method, auth.username and',
};
const NO_SUCH_OPERATION: SignInMeaning = {
  code: 'http-status',
  text: 'there is no such sign-in operation',
  hint: 'check service.baseUrl; servers that differ need auth.path or auth.operation',
};
const REDIRECTED: SignInMeaning = {
  code: 'redirected',
  text: 'the server redirects the sign-in, redirect not followed',
  hint: 'set service.baseUrl to the final address (https instead of http, for example)',
};
const NOT_THE_SERVICE: SignInMeaning = {
  code: 'http-status',
  text: 'a proxy or another server answered the sign-in in place of the service',
  hint: 'check service.baseUrl and service.proxy, and ask those who run the proxy',
};
const OTHER: SignInMeaning = {
  code: 'http-status',
  text: FAILED,
  hint: 'check auth.method and auth.path, and the log of the service',
};
/** V4.2 and V4.3 answer an unknown user like any internal fault (docs/dev/rest.md 4.3). */
const AMBIGUOUS: SignInMeaning = {
  code: 'http-status',
  text: `${FAILED}, or the user is unknown there`,
  hint: 'check auth.username first: some releases respond like this to an unknown user; otherwise the service failed, and its log has the reason',
};

function meaningOf(status: number, problem: Problem): SignInMeaning {
  if (status >= 500 && FAILURES.wrongSecret.sign.test(startOf(problem))) return REFUSED;
  if (status === 500 && FAILURES.unexpected.sign.test(problem.words)) return AMBIGUOUS;
  if ((status === 500 || status === 502) && REFUSED_SIGN_IN_TITLE.test(problem.title)) return REFUSED;
  if (isTooLong(status, problem)) return { ...TOO_LONG, text: 'the sign-in is too long for the server' };
  const shared = MEANING_OF_STATUS[status];
  if (shared !== undefined) return { ...shared, text: 'the server takes no sign-ins for now' };
  if (status === 400 || status === 401 || status === 403) return isOfProxy(status, problem) ? NOT_THE_SERVICE : REFUSED;
  if (status === 404 || status === 405) return NO_SUCH_OPERATION;
  return status < 400 ? REDIRECTED : OTHER;
}

/** No release answers a wrong secret with 403 and a text that is no JSON (docs/dev/rest.md 4.3); proxies do. */
function isOfProxy(status: number, { isPage, isOwn, words }: Problem): boolean {
  const isText = status === 403 && !isOwn && words !== '' && !words.startsWith('{');
  return isPage || (isText && !FAILURES.wrongSecret.sign.test(words));
}

interface RefusalContext {
  readonly url: string;
  readonly secrets: Secrets;
  readonly secretPlace: string;
}

/** The error for a status other than 2xx. Quotes the server, cut and without secrets. */
export function signInRefusal(
  { status, retryAfterMs }: HttpStatus,
  text: string,
  { url, secrets, secretPlace }: RefusalContext,
): JobtailError {
  const problem = problemOf(text);
  const meaning = meaningOf(status, problem);
  const words = secrets.safeText(problem.words);
  return new JobtailError(
    meaning.code,
    `${meaning.text} (status ${status} of ${url})${words === '' ? '' : `: ${words}`}`,
    {
      hint: meaning === REFUSED ? `${meaning.hint} ${secretPlace}` : meaning.hint,
      retryAfterMs,
    },
  );
}
