/** A service that answers, but not with what was asked for: faults and statuses, and what they mean. */
import { type ErrorCode, JobtailError, type JobtailErrorOptions } from '../../errors.ts';
import type { Secrets } from '../../redact.ts';
import type { Operation } from './contract.ts';

const MAX_WORDS = 500;
/** What a fault means stands at its beginning. */
const MAX_EXAMINED = 2048;

/** What was seen of releases that do not know a session any more (docs/servers.md 3.3). */
const SESSION_LOST =
  /\b(?:session ?code|access token|bearer token)\b[\s\S]{0,200}?\b(?:not valid|invalid|expired|not present)\b/i;

/** What a service said instead of a result. */
export interface Refusal {
  readonly status: number;
  /** Whether it is a SOAP fault. */
  readonly isFault: boolean;
  /** Its own words; may be empty, and may hold the session code. */
  readonly words: string;
  readonly retryAfterMs: number | undefined;
}

export interface RefusedCall {
  readonly operation: Operation;
  /** They are taken out of the words. */
  readonly secrets: Secrets;
  /** Whether words of a service say, in its own way, that a session is lost. */
  readonly isSessionFault: ((words: string) => boolean) | undefined;
}

/** The error for a refusal. `session-lost` is only a guess: another user's job looks the same (docs/servers.md 3.3). */
export function refusalError(refusal: Refusal, call: RefusedCall): JobtailError {
  const { status, isFault, words, retryAfterMs } = refusal;
  const said = call.secrets.safeText(words, MAX_WORDS);
  const quoted = said === '' ? '' : `: ${said}`;
  const meaning = isSessionLost(refusal, call) ? SESSION_LOST_MEANING : meaningOf(status, isFault);
  const how = isFault
    ? `a fault${status === 200 || status === 500 ? '' : ` and status ${status}`}`
    : `status ${status}`;
  const options: JobtailErrorOptions = {
    hint: meaning.hint,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
  return new JobtailError(meaning.code, `the service answered ${call.operation} with ${how}${quoted}`, options);
}

function isSessionLost({ status, words }: Refusal, { isSessionFault }: RefusedCall): boolean {
  if (status === 401 || status === 403) return true;
  const beginning = words.slice(0, MAX_EXAMINED);
  return SESSION_LOST.test(beginning) || isSessionFault?.(beginning) === true;
}

interface Meaning {
  readonly code: ErrorCode;
  readonly hint: string;
}

const SESSION_LOST_MEANING: Meaning = {
  code: 'session-lost',
  hint: 'signing in again did not help: a job of another user and a wrong job id look the same as a lost session',
};

const FAULT_MEANING: Meaning = {
  code: 'fault',
  hint: 'these are the words of the service itself: look at the job id, and whether the job belongs to auth.username',
};

const BY_STATUS: Readonly<Record<number, Meaning>> = {
  413: { code: 'request-too-long', hint: 'the service takes only shorter requests' },
  414: { code: 'request-too-long', hint: 'the service takes only shorter requests' },
  429: { code: 'rate-limited', hint: 'lower service.requestsPerMinute if this happens often' },
  502: { code: 'unavailable', hint: 'the proxy in front of the service does not reach it' },
  503: { code: 'unavailable', hint: 'the service is down or overloaded' },
  504: { code: 'unavailable', hint: 'the proxy in front of the service does not reach it' },
};

const HINTS_BY_STATUS: Readonly<Record<number, string>> = {
  404: 'nothing is at this address: look at service.fileTransferUrl',
  405: 'the address belongs to something else: look at service.fileTransferUrl',
  407: 'the proxy wants a sign-in: look at service.proxy',
  415: 'the service does not take this version of SOAP: look at service.soapVersion',
};

function meaningOf(status: number, isFault: boolean): Meaning {
  const known = BY_STATUS[status];
  if (known !== undefined) return known;
  if (isFault) return FAULT_MEANING;
  const hint = HINTS_BY_STATUS[status] ?? 'look at service.fileTransferUrl; the log of the service may say more';
  return { code: 'http-status', hint };
}

/** The words of a fault of either version, as the `soap` package read it; empty if it has none. */
export function wordsOfFault(fault: unknown): string {
  const { faultstring, faultcode, Reason, Code } = fieldsOf(fault);
  const reason = firstText(faultstring) ?? firstText(fieldsOf(Reason)['Text']);
  const code = firstText(faultcode) ?? firstText(fieldsOf(Code)['Value']);
  return [code, reason].filter((text) => text !== undefined && text.trim() !== '').join(': ');
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** A reason may stand there once for each language. */
function firstText(value: unknown): string | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === 'string' ? first : undefined;
}
