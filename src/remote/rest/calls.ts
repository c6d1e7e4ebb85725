/** Calls of a REST service in a session. Addresses are never logged: with GET they contain the session code. */
import type { Grant } from '../../agent/ports/server.ts';
import { JobtailError } from '../../errors.ts';
import { type ResponseFormat, type ServiceCall, sendCall } from '../content/read-response.ts';
import { type Problem, problemOf, startOf } from '../problem.ts';
import { refusalOf } from '../refusals.ts';
import { type Count, grantHeaders, type ServiceCallsOptions, SessionCalls } from '../session-calls.ts';
import * as wrongResponses from '../wrong-responses.ts';
import type { RestCapabilities } from './capabilities.ts';
import { type Address, REQUEST } from './contract.ts';
import { JsonReader, type JsonRest } from './json-reader.ts';
import { FAILURES, isTooLong, isUnknownPath } from './releases.ts';
import { type Members, queryOf, writeMembers } from './requests.ts';

const URL_KEYS = 'service.baseUrl and service.path';

/** Names no setting, because that one may be in force. */
export const ONLY_DIRECTLY =
  'only a direct transfer brings the file itself: over SSH, or a mounted share (docs/results.md)';

export const unexpected = (what: string): JobtailError =>
  wrongResponses.unexpected(what, `compare ${URL_KEYS} with the address of the middleware`);

const FORMAT: ResponseFormat = {
  name: 'JSON',
  hasType: (contentType) => /^(?:|(?:application|text)\/(?:[\w.-]+\+)?json)$/.test(contentType),
  maxRefusalBytes: 64 * 1024,
  mayBeEmpty: true,
  urlKeyOf: () => URL_KEYS,
  unexpected: (_, what) => unexpected(what),
};

export interface RestCallsOptions extends ServiceCallsOptions {
  /** {base_url} with the path of the middleware, without a slash at its end. */
  readonly url: string;
  readonly capabilities: RestCapabilities;
}

export interface RestServiceCall extends ServiceCall {
  /** The arguments without the session; they may depend on the address. */
  readonly members: (address: Address) => Members;
  readonly maxBytes: number;
  /** Called if an argument is refused; with whether its length is the reason, as far as the response shows that. */
  readonly onInvalid?: (isTooLong: boolean) => void;
}

/** The form of session codes (docs/dev/rest.md 4.1). */
const GUID_BYTES = 36;

/** A response without content, or one that was not read to its end. */
const NOTHING: JsonRest = { value: null, json: 'null' };

export class RestCalls {
  readonly #options: RestCallsOptions;
  readonly #sessions: SessionCalls;
  #sessionBytes = GUID_BYTES;

  constructor(options: RestCallsOptions) {
    this.#options = options;
    this.#sessions = new SessionCalls(options);
  }

  get sessionBytes(): number {
    return this.#sessionBytes;
  }

  /** The response without what was taken. @throws JobtailError */
  call(call: RestServiceCall): Promise<JsonRest> {
    const { operation, members, signal } = call;
    const [address] = this.#options.capabilities.addressesOf(operation);
    const jobId = address === undefined ? '' : String(members(address)[REQUEST.jobId] ?? '');
    return this.#sessions.call(operation, jobId, (grant, count) => this.#attempt(call, grant, count), signal);
  }

  /** Gives each item of the response to `onItem`. @throws JobtailError */
  async list(call: RestServiceCall): Promise<void> {
    const { value } = await this.call(call);
    if (value !== null) throw unexpected('it contains no list');
  }

  /** Tries the possible addresses of an operation, and keeps the one that works. */
  async #attempt(call: RestServiceCall, grant: Grant, count: Count): Promise<JsonRest> {
    const { operation, onInvalid } = call;
    const { capabilities } = this.#options;
    this.#sessionBytes = grant.kind === 'session' ? Buffer.byteLength(grant.code) : 0;
    let first: JobtailError | undefined;
    for (const address of capabilities.addressesOf(operation)) {
      const reading = { format: FORMAT, reader: new JsonReader(call), count };
      const { response, result } = await sendCall(call, this.#options, this.#request(call, address, grant), reading);
      if (result.kind !== 'refusal') {
        capabilities.foundAt(operation, address);
        return result.kind === 'success' ? result.parsed : NOTHING;
      }
      const problem = problemOf(result.head.toString());
      const hasKey = grant.kind === 'api-key';
      const error = refusalOf({ operation, ...response, problem, urlKey: URL_KEYS, hasKey }, this.#options);
      if (reportsInvalid(response.status, problem, error)) onInvalid?.(reportsLength(response.status, problem));
      if (!isUnknownPath(response.status, problem)) throw error;
      first ??= error;
    }
    throw first ?? new JobtailError('internal', `${operation} has no address`);
  }

  #request({ members }: RestServiceCall, address: Address, grant: Grant) {
    const { verb: method, path } = address;
    const session = grant.kind === 'session' ? { [REQUEST.sessionCode]: JSON.stringify(grant.code) } : {};
    const sent = { ...members(address), ...session };
    const url = `${this.#options.url}/${path}`;
    const shared = { 'user-agent': 'jobtail', accept: 'application/json', 'accept-language': 'en' };
    const headers = { ...shared, ...grantHeaders(grant) };
    if (method === 'GET') return { method, url: `${url}?${queryOf(sent)}`, headers };
    return { method, url, headers: { ...headers, 'content-type': 'application/json' }, body: writeMembers(sent) };
  }
}

const reportsLength = (status: number, problem: Problem) =>
  isTooLong(status, problem) || FAILURES.tooLongName.sign.test(startOf(problem));

/** Whether a name is not allowed, in contrast to a missing file (docs/dev/rest.md 3.4). */
function reportsInvalid(status: number, problem: Problem, { code }: JobtailError): boolean {
  const start = startOf(problem);
  const { invalid, noSuchJob } = FAILURES;
  return isTooLong(status, problem) || (code === 'fault' && invalid.sign.test(start) && !noSuchJob.sign.test(start));
}
