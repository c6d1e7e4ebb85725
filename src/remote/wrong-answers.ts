/** Responses other than the requested one: the part that SOAP, REST and the sign-in share. */
import { STATUS_CODES } from 'node:http';
import { type ErrorCode, JobtailError } from '../errors.ts';

export function malformed(what: string): JobtailError {
  return new JobtailError('malformed', `the answer is damaged: ${what}`, {
    hint: 'if the error persists, report it to the operator of the service or of the proxy in front of it',
  });
}

export function tooLarge(than: string): JobtailError {
  return new JobtailError('answer-too-large', `the answer has ${than} besides the content of files`, {
    hint: 'request fewer files at once; if the error persists, check what the service sends',
  });
}

export interface StatusMeaning {
  readonly code: ErrorCode;
  readonly hint: string;
}

export const TOO_LONG: StatusMeaning = {
  code: 'request-too-long',
  hint: 'raise the limit of the service or its proxy for the size of requests',
};
const DOWN: StatusMeaning = {
  code: 'unavailable',
  hint: 'wait, or inform the operator of the service: it is down or overloaded, or its proxy cannot reach it',
};

export const MEANING_OF_STATUS: Readonly<Record<number, StatusMeaning>> = {
  413: TOO_LONG,
  414: TOO_LONG,
  429: {
    code: 'rate-limited',
    hint: 'set service.requestsPerMinute to the limit of the service if this happens often',
  },
  502: DOWN,
  503: DOWN,
  504: DOWN,
};

/** Observed responses to an unknown session (docs/dev/servers.md 3.3). */
const SESSION_LOST =
  /\b(?:session ?code|access token|bearer token)\b[\s\S]{0,200}?\b(?:not valid|invalid|expired|not present)\b/i;

/** The meaning of a refusal is at its start. */
const MAX_EXAMINED = 2048;

/** The words of every release for a job of another user: the session is valid (docs/dev/rest.md 4.2). */
export const FOREIGN_JOB = /\bnot authorized to (?:query|work with) job info\b|nemá povolení pracovat s jobem/i;

/** Whether a failed response means a lost session. It is only a guess (docs/dev/servers.md 3.3). */
export function isSessionLost(status: number, words: string, isSessionFault: (words: string) => boolean): boolean {
  const beginning = words.slice(0, MAX_EXAMINED);
  if (FOREIGN_JOB.test(beginning)) return false;
  return status === 401 || status === 403 || SESSION_LOST.test(beginning) || isSessionFault(beginning);
}

export const LOST: StatusMeaning = {
  code: 'session-lost',
  hint: 'signing in again did not help: a wrong job id, or a job of another user, may look like a lost session',
};

export const FAULT: StatusMeaning = {
  code: 'fault',
  hint: 'these are the words of the service itself: check the job id, and whether the job belongs to auth.username',
};

/** Fields of error objects, the most specific first. */
const FIELDS = ['message', 'detail', 'error_description', 'exceptionmessage', 'title', 'error'];

/** Default texts of ASP.NET for a status. */
const OF_STATUS: ReadonlySet<string> = new Set([
  ...Object.values(STATUS_CODES).map(String),
  'An error occurred while processing your request.',
]);

export interface Problem {
  /** The message; the whole text if it is no object with a usual field, '' for HTML. */
  readonly words: string;
  readonly title: string;
  /** Whether the words are those of the service, not of the web server. */
  readonly isOwn: boolean;
  readonly isPage: boolean;
}

export function problemOf(text: string): Problem {
  if (text.trimStart().startsWith('<')) return { words: '', title: '', isOwn: false, isPage: true };
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    return { words: text, title: '', isOwn: false, isPage: false };
  }
  if (typeof value === 'string') return { words: value, title: '', isOwn: value !== '', isPage: false };
  if (typeof value !== 'object' || value === null) return { words: text, title: '', isOwn: false, isPage: false };
  const fields = new Map(Object.entries(value).map(([key, inner]: [string, unknown]) => [key.toLowerCase(), inner]));
  const wordsAt = (name: string) => {
    const words = fields.get(name);
    return typeof words === 'string' && words !== '' ? words : undefined;
  };
  const words = FIELDS.map(wordsAt).find((found) => found !== undefined);
  const isOwn = words !== undefined && !OF_STATUS.has(words);
  return {
    words: withErrors(words ?? text, fields.get('errors')),
    title: wordsAt('title') ?? '',
    isOwn,
    isPage: false,
  };
}

/** ASP.NET names the reason only in `errors`: {"RelativeFilePath": ["... maximum length of 50."]}. */
function withErrors(words: string, errors: unknown): string {
  if (typeof errors !== 'object' || errors === null) return words;
  const each = Object.values(errors)
    .flat()
    .filter((error) => typeof error === 'string');
  return each.length === 0 ? words : `${words} ${each.join(' ')}`;
}
