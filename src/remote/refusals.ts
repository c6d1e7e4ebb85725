/** What a refusal means: for faults of SOAP, problem documents of REST, and pages of proxies. */
import { type ErrorCode, JobtailError, type NoFile } from '../errors.ts';
import type { Operation } from '../operations.ts';
import type { Secrets } from '../redact.ts';
import type { HttpStatus } from './http/http-client.ts';
import { type Problem, startOf } from './problem.ts';
import { FAILURES, isTooLong } from './rest/releases.ts';

export interface Meaning {
  readonly code: ErrorCode;
  readonly hint: string;
}

export const TOO_LONG: Meaning = {
  code: 'request-too-long',
  hint: 'raise the limit of the service or its proxy for the size of requests',
};

const TOO_LONG_FOR: Partial<Record<Operation, Meaning>> = {
  // Only the job id varies in length (docs/dev/rest.md 2.2).
  ListChangedFilesForJob: {
    code: 'request-too-long',
    hint: 'this release lists no job whose id has five digits or more: its results come by no way, its live files do',
  },
  // The same name is refused again, other names are not.
  DownloadFileFromCluster: { code: 'fault', hint: 'the service takes only shorter paths' },
};

const DOWN: Meaning = {
  code: 'unavailable',
  hint: 'wait, or inform the operator of the service: it is down or overloaded, or its proxy cannot reach it',
};

export const MEANING_OF_STATUS: Readonly<Record<number, Meaning>> = {
  429: {
    code: 'rate-limited',
    hint: 'set service.requestsPerMinute to the limit of the service if this happens often',
  },
  502: DOWN,
  503: DOWN,
  504: { ...DOWN, code: 'timeout' },
};

/** Temporary refusals (docs/dev/rest.md 4.4). */
const PASSES = /unable ?to ?create ?connection|connection ?pool ?exhausted/i;
const PASSING: Meaning = { code: 'unavailable', hint: 'it is over by itself: the cluster could not be reached' };

const NO_FILES: readonly (readonly [NoFile, RegExp])[] = [
  ['unclear', FAILURES.directory.sign],
  ['nothing', FAILURES.noSuchFile.sign],
  ['unreadable', FAILURES.unreadableFile.sign],
];

/** No refusal with a path is longer. The signs examine all of it, in a time that grows with the square. */
const MAX_REFUSED_FILE = 8_192;

function inPlaceOf({ operation, problem }: RefusedCall): NoFile | undefined {
  const isOfFile = operation === 'DownloadFileFromCluster' && problem.isOwn;
  if (!isOfFile || problem.words.length > MAX_REFUSED_FILE) return undefined;
  return NO_FILES.find(([, sign]) => sign.test(problem.words))?.[0];
}

const FAULT: Meaning = {
  code: 'fault',
  hint: 'these are the words of the service itself: check the job id, and whether the job belongs to auth.username',
};

const LOST: Meaning = {
  code: 'session-lost',
  hint: 'signing in again did not help: a wrong job id, or a job of another user, may look like a lost session',
};

const KEY_REFUSED: Meaning = {
  code: 'sign-in-refused',
  hint: 'check auth.username and the password: each request carries both',
};

export interface RefusedCall extends HttpStatus {
  readonly operation: Operation;
  readonly problem: Problem;
  /** The keys of the configuration that have the address. */
  readonly urlKey: string;
  readonly how?: string;
  /** Whether the request carried user name and password. */
  readonly hasKey?: boolean;
}

interface RefusalOptions {
  readonly secrets: Secrets;
  readonly isSessionFault: (words: string) => boolean;
}

const MAX_WORDS = 500;

/** `session-lost` is only a guess: another user's job looks the same (docs/dev/servers.md 3.3). */
export function refusalOf(refused: RefusedCall, { secrets, isSessionFault }: RefusalOptions): JobtailError {
  const { operation, status, retryAfterMs, problem, how = `status ${status}`, hasKey = false } = refused;
  const { title, words } = problem;
  const isLost = isSessionLost(status, problem, isSessionFault);
  const isKeyRefused = hasKey && FAILURES.wrongKey.sign.test(startOf(problem));
  const { code, hint } = isKeyRefused ? KEY_REFUSED : isLost ? LOST : meaningOf(refused);
  const detail = secrets.safeText(title === '' || title === words ? words : `${title}: ${words}`, MAX_WORDS);
  const message = `the service answered ${operation} with ${how}${detail === '' ? '' : `: ${detail}`}`;
  return new JobtailError(code, message, { hint, retryAfterMs, inPlace: inPlaceOf(refused) });
}

function isSessionLost(status: number, problem: Problem, isSessionFault: (words: string) => boolean): boolean {
  const start = startOf(problem);
  // The words for a job of another user: the session is valid (docs/dev/rest.md 4.3).
  if (FAILURES.foreignJob.sign.test(start)) return false;
  const { sessionUnknown, sessionExpired } = FAILURES;
  const isNamed = sessionUnknown.sign.test(start) || sessionExpired.sign.test(start);
  return status === 401 || status === 403 || isNamed || isSessionFault(start);
}

function meaningOf({ operation, status, problem, urlKey }: RefusedCall): Meaning {
  if (isTooLong(status, problem)) return TOO_LONG_FOR[operation] ?? TOO_LONG;
  if (status !== 429 && PASSES.test(startOf(problem))) return PASSING;
  const known = FAILURES.external.sign.test(startOf(problem)) ? undefined : MEANING_OF_STATUS[status];
  if (known !== undefined) return known;
  if (problem.isOwn) return FAULT;
  const hints: Readonly<Record<number, string>> = {
    404: `nothing is at this address: check ${urlKey}`,
    405: `the address belongs to something else: check ${urlKey}`,
    407: 'the proxy wants a sign-in: check service.proxy',
    415: 'the service does not take such requests: check service.protocol and service.soapVersion',
  };
  return { code: 'http-status', hint: hints[status] ?? `check ${urlKey}, and the log of the service` };
}
