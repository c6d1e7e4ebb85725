/** What a refusal means: one table for faults of SOAP, problem documents of REST, and pages of proxies. */
import { STATUS_CODES } from 'node:http';
import { type ErrorCode, JobtailError, type NoFile } from '../errors.ts';
import type { Operation } from '../operations.ts';
import type { HttpStatus } from './http/http-client.ts';
import type { ServiceCallsOptions } from './session-calls.ts';
import { titleOf } from './wrong-answers.ts';

/** What the body of a refusal reports. */
export interface Problem {
  /** The message; the whole text if it is no object with a usual field. May contain the session code. */
  readonly words: string;
  readonly title: string;
  /** Whether the words are those of the service, not of the web server. */
  readonly isOwn: boolean;
  readonly isPage: boolean;
}

/** Fields of error objects, the most specific first. */
const FIELDS = ['message', 'detail', 'error_description', 'exceptionmessage', 'title', 'error'];

/** Default texts of ASP.NET for a status. */
const OF_STATUS: ReadonlySet<string> = new Set([
  ...Object.values(STATUS_CODES).map(String),
  'An error occurred while processing your request.',
]);

export function problemOf(text: string): Problem {
  const problem = { words: text, title: '', isOwn: false, isPage: false };
  if (text.trimStart().startsWith('<')) return { ...problem, words: titleOf(text), isPage: true };
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    return problem;
  }
  if (typeof value === 'string') return { ...problem, words: value, isOwn: value !== '' };
  if (typeof value !== 'object' || value === null) return problem;
  const fields = new Map(Object.entries(value).map(([key, inner]: [string, unknown]) => [key.toLowerCase(), inner]));
  const wordsAt = (name: string) => {
    const words = fields.get(name);
    return typeof words === 'string' && words !== '' ? words : undefined;
  };
  const words = FIELDS.map(wordsAt).find((found) => found !== undefined);
  return {
    words: withErrors(words ?? text, fields.get('errors')),
    title: wordsAt('title') ?? '',
    isOwn: words !== undefined && !OF_STATUS.has(words),
    isPage: false,
  };
}

/** ASP.NET names the reason only in `errors`: {"RelativeFilePath": ["... maximum length of 50."]}. */
function withErrors(words: string, errors: unknown): string {
  if (typeof errors !== 'object' || errors === null) return words;
  const each = Object.values(errors)
    .flat()
    .filter((error) => typeof error === 'string');
  return [words, ...each].join(' ');
}

/** The meaning of a refusal is at its start. */
const MAX_EXAMINED = 2048;

export const startOf = ({ title, words }: Problem) => `${title} ${words}`.trimStart().slice(0, MAX_EXAMINED);

export interface Meaning {
  readonly code: ErrorCode;
  readonly hint: string;
}

/** A request that is too long (docs/dev/rest.md 2.3): in words, or by the status page of releases up to V3.1. */
const TOO_LONG_TEXT = /\b(?:request|body|content)\b.{0,40}\b(?:too (?:large|long|big)|exceeds?)\b|^Status Code: 400\b/i;

export function isTooLong(status: number, problem: Problem): boolean {
  return status === 413 || status === 414 || (status === 400 && TOO_LONG_TEXT.test(startOf(problem)));
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
  504: DOWN,
};

/** Temporary refusals (docs/dev/rest.md 4.4). */
const PASSES = /unable ?to ?create ?connection|connection ?pool ?exhausted/i;
const PASSING: Meaning = { code: 'unavailable', hint: 'it is over by itself: the cluster could not be reached' };

/** Refusals of one request, with the status of a proxy (docs/dev/rest.md 4.3). */
const OWN_REFUSAL = /^External Service Error|^SSH Problem (?:No such file|Permission denied$)/;

/** The words of the SFTP server for a file, whole or at the end of those of the service (docs/dev/rest.md 3.5). */
const NO_FILES: Readonly<Record<NoFile, RegExp>> = {
  'a directory': /Exception message: 'Failure'\.$/,
  nothing: /(?:^|: '?)No such file\. Path: '.*'\.(?:'\.)?$/s,
  unreadable: /Exception message: 'Permission denied'\.$/,
};

function inPlaceOf({ operation, problem }: Refused): NoFile | undefined {
  if (operation !== 'DownloadFileFromCluster' || !problem.isOwn) return undefined;
  const kinds = Object.keys(NO_FILES) as NoFile[];
  return kinds.find((kind) => NO_FILES[kind].test(problem.words));
}

const FAULT: Meaning = {
  code: 'fault',
  hint: 'these are the words of the service itself: check the job id, and whether the job belongs to auth.username',
};

/** Observed responses to an unknown session (docs/dev/servers.md 3.3). */
const SESSION_LOST =
  /\b(?:session ?code|access token|bearer token)\b[\s\S]{0,200}?\b(?:not valid|invalid|expired|not present)\b/i;

/** The words of every release for a job of another user: the session is valid (docs/dev/rest.md 4.2). */
export const FOREIGN_JOB = /\bnot authorized to (?:query|work with) job info\b|nemá povolení pracovat s jobem/i;

const LOST: Meaning = {
  code: 'session-lost',
  hint: 'signing in again did not help: a wrong job id, or a job of another user, may look like a lost session',
};

export interface Refused extends HttpStatus {
  readonly operation: Operation;
  readonly problem: Problem;
  /** The keys of the configuration that have the address. */
  readonly urlKey: string;
  readonly how?: string;
}

const MAX_WORDS = 500;

/** `session-lost` is only a guess: another user's job looks the same (docs/dev/servers.md 3.3). */
export function refusalOf(refused: Refused, { secrets, isSessionFault }: ServiceCallsOptions): JobtailError {
  const { operation, status, retryAfterMs, problem, how = `status ${status}` } = refused;
  const { title, words } = problem;
  const isLost = isSessionLost(status, problem, isSessionFault);
  const { code, hint } = isLost ? LOST : meaningOf(refused);
  const detail = secrets.safeText(title === '' || title === words ? words : `${title}: ${words}`, MAX_WORDS);
  const message = `the service answered ${operation} with ${how}${detail === '' ? '' : `: ${detail}`}`;
  return new JobtailError(code, message, { hint, retryAfterMs, inPlace: inPlaceOf(refused) });
}

function isSessionLost(status: number, problem: Problem, isSessionFault: (words: string) => boolean): boolean {
  const start = startOf(problem);
  if (FOREIGN_JOB.test(start)) return false;
  return status === 401 || status === 403 || SESSION_LOST.test(start) || isSessionFault(start);
}

function meaningOf({ operation, status, problem, urlKey }: Refused): Meaning {
  if (isTooLong(status, problem)) return TOO_LONG_FOR[operation] ?? TOO_LONG;
  if (status !== 429 && PASSES.test(startOf(problem))) return PASSING;
  const known = OWN_REFUSAL.test(startOf(problem)) ? undefined : MEANING_OF_STATUS[status];
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
