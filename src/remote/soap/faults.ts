/** Failed responses, and their meaning. */
import { JobtailError } from '../../errors.ts';
import type { Operation } from '../../operations.ts';
import type { Fields, Value } from '../content/values.ts';
import type { HttpAnswer } from '../http/http-client.ts';
import type { ServiceCallsOptions } from '../session-calls.ts';
import { FAULT, isSessionLost, LOST, MEANING_OF_STATUS, type StatusMeaning } from '../wrong-answers.ts';
import { type ServiceName, serviceOf } from './contract.ts';

const MAX_WORDS = 500;

const URL_KEYS: Readonly<Record<ServiceName, string>> = {
  FileTransferWs: 'service.fileTransferUrl',
  JobManagementWs: 'service.jobsUrl',
};

export const urlKeyOf = (operation: Operation): string => URL_KEYS[serviceOf(operation)];

export function unexpected(operation: Operation, what: string): JobtailError {
  return new JobtailError('unexpected-answer', `the response is not for this request: ${what}`, {
    hint: `compare ${urlKeyOf(operation)}, service.namespace and service.soapVersion with the WSDL of the service`,
  });
}

export interface Fault {
  /** Whether it is a SOAP fault, not only a status. */
  readonly isFault: boolean;
  /** May be empty, and may contain the session code. */
  readonly words: string;
}

/** The error for a fault. `session-lost` is only a guess: another user's job looks the same (docs/dev/servers.md 3.3). */
export function faultError(
  operation: Operation,
  { status, retryAfterMs }: Pick<HttpAnswer, 'status' | 'retryAfterMs'>,
  { isFault, words }: Fault,
  { secrets, isSessionFault }: Pick<ServiceCallsOptions, 'secrets' | 'isSessionFault'>,
): JobtailError {
  const isLost = isSessionLost(status, words, isSessionFault);
  const { code, hint } = isLost ? LOST : meaningOf(status, isFault, urlKeyOf(operation));
  const how = isFault
    ? `a fault${status === 200 || status === 500 ? '' : ` and status ${status}`}`
    : `status ${status}`;
  const quoted = secrets.safeText(words, MAX_WORDS);
  const message = `the service answered ${operation} with ${how}${quoted === '' ? '' : `: ${quoted}`}`;
  return new JobtailError(code, message, { hint, retryAfterMs });
}

const hintsOfStatus = (urlKey: string): Readonly<Record<number, string>> => ({
  404: `nothing is at this address: check ${urlKey}`,
  405: `the address belongs to something else: check ${urlKey}`,
  407: 'the proxy wants a sign-in: check service.proxy',
  415: 'the service does not take this version of SOAP: check service.soapVersion',
});

function meaningOf(status: number, isFault: boolean, urlKey: string): StatusMeaning {
  const known = MEANING_OF_STATUS[status];
  if (known !== undefined) return known;
  if (isFault) return FAULT;
  const usual = `check ${urlKey}, and the log of the service`;
  return { code: 'http-status', hint: hintsOfStatus(urlKey)[status] ?? usual };
}

/** The code and the first reason of a fault, in SOAP 1.1 and 1.2; there may be a reason for each language. */
export function faultWords(fault: Fields): string {
  const texts = [
    fault.get('faultcode') ?? inside(fault.get('code'), 'value'),
    fault.get('faultstring') ?? inside(fault.get('reason'), 'text'),
  ].map((value) => [value].flat()[0]);
  return texts.filter((text) => typeof text === 'string' && text.trim() !== '').join(': ');
}

const inside = (value: Value | undefined, name: string): Value | undefined =>
  value instanceof Map ? (value as Fields).get(name) : undefined;
