/** Responses that are no success, and their meaning (docs/rest.md 4.2, 4.3). */
import { JobtailError } from '../../errors.ts';
import type { Operation } from '../../operations.ts';
import type { Secrets } from '../../redact.ts';
import { titleOf } from '../content/read-response.ts';
import type { HttpAnswer } from '../http/http-client.ts';
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

/** The keys of the configuration for the addresses of the service. */
export const URL_KEYS = 'service.baseUrl and service.path';

const MAX_WORDS = 500;

/** Of refusals that are over by themselves (docs/rest.md 4.4). */
const PASSES = /unable ?to ?create ?connection|connection ?pool ?exhausted/i;
/** The title of what the service refuses by itself, though the status is that of a proxy (docs/rest.md 4.3). */
const OWN_REFUSAL = 'External Service Error';
/** Of a request that is longer than allowed (docs/rest.md 2.3). */
const TOO_LONG_TEXT = /\b(?:request|body|content)\b.{0,40}\b(?:too (?:large|long|big)|exceeds?)\b/i;
/** The status page of releases up to V3.1, which only a request that is too long meets with 400 (docs/rest.md 2.3). */
const STATUS_PAGE = /^Status Code: 400\b/;
/** Of a name that is not allowed, and not of a file that is not there (docs/rest.md 3.4). */
const INVALID = /\b(?:not valid|invalid|illegal|validation|RelativeFilePath|longer|length)\b/i;
const NOT_THERE = /\b(?:not found|not exist|no such)\b/i;

/** The response is well-formed but belongs to another request; `what` gives the reason. */
export function unexpected(what: string): JobtailError {
  return new JobtailError('unexpected-answer', `the response is not for this request: ${what}`, {
    hint: `compare ${URL_KEYS} with the address of the middleware`,
  });
}

export interface RefusalReading {
  /** Nothing of them goes into a message. */
  readonly secrets: Secrets;
  /** Whether an error text of a service means a lost session. */
  readonly isSessionFault: (words: string) => boolean;
}

export interface Refusal {
  readonly error: JobtailError;
  /** There is no such operation, or not by this verb: it may have another address. */
  readonly isWrongAddress: boolean;
  /** The request itself is wrong. */
  readonly reportsInvalid: boolean;
}

/** What an answer with this body means. */
export function refusalOf(
  operation: Operation,
  answer: Pick<HttpAnswer, 'status' | 'retryAfterMs'>,
  body: Buffer,
  { secrets, isSessionFault }: RefusalReading,
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

/** The way of results that the service does not hand out. It names no setting, which may be the one in force. */
export const ONLY_BY_SSH = 'only a transfer by SSH brings the file itself (docs/transfers.md)';

const TOO_LONG_FOR: Partial<Record<Operation, StatusMeaning>> = {
  // The id of the job is all that differs in length (docs/rest.md 2.2).
  ListChangedFilesForJob: {
    code: 'request-too-long',
    hint: 'this release lists no job whose id has five digits or more: its results come by no way, its live files do',
  },
  // The same name is refused again, and others are not.
  DownloadFileFromCluster: { code: 'fault', hint: 'the service takes only shorter paths' },
};

/** Where files are reached in another way than by SSH, parts are refused (docs/rest.md 5.2). */
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
