/** Answers that are no success: what their status and their words mean. */
import { JobtailError } from '../../errors.ts';
import type { Secrets } from '../../redact.ts';
import { MEANING_OF_STATUS, type StatusMeaning } from '../wrong-answers.ts';

const MAX_WORDS = 500;
/** What a fault means stands at its beginning. */
const MAX_EXAMINED = 2048;

/** What was seen of releases that do not know a session any more (docs/servers.md 3.3). */
const SESSION_LOST =
  /\b(?:session ?code|access token|bearer token)\b[\s\S]{0,200}?\b(?:not valid|invalid|expired|not present)\b/i;

/** What a service said instead of a result. */
export interface Fault {
  readonly status: number;
  /** Whether it is a SOAP fault, and not a bare status. */
  readonly isFault: boolean;
  /** Its own words; may be empty, and may hold the session code. */
  readonly words: string;
  readonly retryAfterMs: number | undefined;
}

export interface FaultReading {
  /** They are taken out of the words. */
  readonly secrets: Secrets;
  /** Whether words of a service say, in its own way, that a session is lost. */
  readonly isSessionFault: (words: string) => boolean;
}

/** The error for a fault. `session-lost` is only a guess: another user's job looks the same (docs/servers.md 3.3). */
export function faultError(operation: string, fault: Fault, { secrets, isSessionFault }: FaultReading): JobtailError {
  const { status, isFault, words, retryAfterMs } = fault;
  const said = secrets.safeText(words, MAX_WORDS);
  const { code, hint } = isSessionLost(fault, isSessionFault) ? LOST : meaningOf(status, isFault);
  const how = isFault
    ? `a fault${status === 200 || status === 500 ? '' : ` and status ${status}`}`
    : `status ${status}`;
  const message = `the service answered ${operation} with ${how}${said === '' ? '' : `: ${said}`}`;
  return new JobtailError(code, message, { hint, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
}

function isSessionLost({ status, words }: Fault, isSessionFault: FaultReading['isSessionFault']): boolean {
  if (status === 401 || status === 403) return true;
  const beginning = words.slice(0, MAX_EXAMINED);
  return SESSION_LOST.test(beginning) || isSessionFault(beginning);
}

const LOST: StatusMeaning = {
  code: 'session-lost',
  hint: 'signing in again did not help: a job of another user and a wrong job id look the same as a lost session',
};

const FAULT: StatusMeaning = {
  code: 'fault',
  hint: 'these are the words of the service itself: look at the job id, and whether the job belongs to auth.username',
};

const HINT_OF_STATUS: Readonly<Record<number, string>> = {
  404: 'nothing is at this address: look at service.fileTransferUrl',
  405: 'the address belongs to something else: look at service.fileTransferUrl',
  407: 'the proxy wants a sign-in: look at service.proxy',
  415: 'the service does not take this version of SOAP: look at service.soapVersion',
};
const USUAL_HINT = 'look at service.fileTransferUrl; the log of the service may say more';

function meaningOf(status: number, isFault: boolean): StatusMeaning {
  const known = MEANING_OF_STATUS[status];
  if (known !== undefined) return known;
  return isFault ? FAULT : { code: 'http-status', hint: HINT_OF_STATUS[status] ?? USUAL_HINT };
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
