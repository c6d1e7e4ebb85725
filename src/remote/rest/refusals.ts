/** Responses that are no success, and their meaning (docs/dev/rest.md 4.2, 4.3). */
import { JobtailError } from '../../errors.ts';
import type { Operation } from '../../operations.ts';
import { titleOf } from '../content/read-response.ts';
import type { HttpAnswer } from '../http/http-client.ts';
import type { ServiceCallsOptions } from '../session-calls.ts';
import {
  FAULT,
  isSessionLost,
  LOST,
  MEANING_OF_STATUS,
  type Problem,
  problemOf,
  type StatusMeaning,
  TOO_LONG,
} from '../wrong-answers.ts';

export const URL_KEYS = 'service.baseUrl and service.path';

const MAX_WORDS = 500;

/** Temporary refusals (docs/dev/rest.md 4.4). */
const PASSES = /unable ?to ?create ?connection|connection ?pool ?exhausted/i;
/** The title of a refusal by the service, with the status of a proxy (docs/dev/rest.md 4.3). */
const OWN_REFUSAL = 'External Service Error';
/** A request that is too long (docs/dev/rest.md 2.3). */
const TOO_LONG_TEXT = /\b(?:request|body|content)\b.{0,40}\b(?:too (?:large|long|big)|exceeds?)\b/i;
/** The status page of releases up to V3.1, with 400 for a request that is too long (docs/dev/rest.md 2.3). */
const STATUS_PAGE = /^Status Code: 400\b/;
/** A name that is not allowed, in contrast to a missing file (docs/dev/rest.md 3.4). */
const INVALID = /\b(?:not valid|invalid|illegal|validation|RelativeFilePath|longer|length)\b/i;
const NOT_THERE = /\b(?:not found|not exist|no such)\b/i;

export function unexpected(what: string): JobtailError {
  return new JobtailError('unexpected-answer', `the response is not for this request: ${what}`, {
    hint: `compare ${URL_KEYS} with the address of the middleware`,
  });
}

export interface Refusal {
  readonly error: JobtailError;
  /** The operation or its verb does not exist there: it may have another address. */
  readonly isWrongAddress: boolean;
  readonly reportsInvalid: boolean;
}

export function refusalOf(
  operation: Operation,
  answer: Pick<HttpAnswer, 'status' | 'retryAfterMs'>,
  body: Buffer,
  { secrets, isSessionFault }: Pick<ServiceCallsOptions, 'secrets' | 'isSessionFault'>,
): Refusal {
  const { status, retryAfterMs } = answer;
  const problem = problemOf(body.toString());
  const words = problem.words === '' ? titleOf(body) : problem.words;
  const meaning = isSessionLost(status, `${problem.title} ${words}`, isSessionFault)
    ? LOST
    : meaningOf(operation, status, problem);
  const { code, hint } = meaning;
  const detail = secrets.safeText(
    problem.title === '' || problem.title === words ? words : `${problem.title}: ${words}`,
    MAX_WORDS,
  );
  const message = `the service answered ${operation} with status ${status}${detail === '' ? '' : `: ${detail}`}`;
  return {
    error: new JobtailError(code, message, { hint, retryAfterMs }),
    isWrongAddress: status === 405 || (status === 404 && !problem.isOwn) || (status === 500 && body.length === 0),
    reportsInvalid:
      meaning === TOO_LONG_FOR[operation] || (code === 'fault' && INVALID.test(detail) && !NOT_THERE.test(detail)),
  };
}

/** Names no setting, because that one may be in force. */
export const ONLY_BY_SSH = 'only a transfer by SSH brings the file itself (docs/results.md)';

const TOO_LONG_FOR: Partial<Record<Operation, StatusMeaning>> = {
  // Only the job id varies in length (docs/dev/rest.md 2.2).
  ListChangedFilesForJob: {
    code: 'request-too-long',
    hint: 'this release lists no job whose id has five digits or more: its results come by no way, its live files do',
  },
  // The same name is refused again, other names are not.
  DownloadFileFromCluster: { code: 'fault', hint: 'the service takes only shorter paths' },
};

/** Parts are refused where files are not reached by SSH (docs/dev/rest.md 5.2). */
const PARTS_HINT = `${FAULT.hint}; if its files are listed all the same, the cluster may be one of FirecREST: ${ONLY_BY_SSH}`;

const PASSING: StatusMeaning = { code: 'unavailable', hint: 'it is over by itself: the cluster could not be reached' };

const HINTS: Readonly<Record<number, string>> = {
  404: `nothing is at this address: check ${URL_KEYS}`,
  405: `the address belongs to something else: check ${URL_KEYS}`,
  407: 'the proxy wants a sign-in: check service.proxy',
};

function meaningOf(operation: Operation, status: number, problem: Problem): StatusMeaning {
  const meaning = meaningOfStatus(status, problem);
  if (meaning === TOO_LONG) return TOO_LONG_FOR[operation] ?? TOO_LONG;
  const isOfParts = meaning.code === 'fault' && operation === 'DownloadPartsOfJobFilesFromCluster';
  return isOfParts ? { ...meaning, hint: PARTS_HINT } : meaning;
}

function meaningOfStatus(status: number, { words, title, isOwn }: Problem): StatusMeaning {
  if (status === 400 && (TOO_LONG_TEXT.test(`${title} ${words}`) || STATUS_PAGE.test(words))) return TOO_LONG;
  if (status !== 429 && PASSES.test(`${title} ${words}`)) return PASSING;
  const known = title === OWN_REFUSAL ? undefined : MEANING_OF_STATUS[status];
  if (known !== undefined) return known;
  if (isOwn) return FAULT;
  return { code: 'http-status', hint: HINTS[status] ?? `check ${URL_KEYS}, and the log of the service` };
}
