/** Calls of one SOAP service in a session. Bulky texts go to their receivers while the response arrives. */
import type { Grant } from '../../agent/ports/server.ts';
import { JobtailError } from '../../errors.ts';
import type { Operation } from '../../operations.ts';
import { type ResponseFormat, type ServiceCall, sendCall } from '../content/read-response.ts';
import type { Taken, Value } from '../content/values.ts';
import type { HttpResponse } from '../http/http-client.ts';
import { type Problem, problemOf } from '../problem.ts';
import { refusalOf } from '../refusals.ts';
import { type Count, grantHeaders, type ServiceCallsOptions, SessionCalls } from '../session-calls.ts';
import { Envelopes, type EnvelopesOptions, inSession, type RequestFields } from './envelope.ts';
import { unexpected, urlKeyOf } from './faults.ts';
import { XmlReader } from './xml-reader.ts';

const FORMAT: ResponseFormat = {
  name: 'SOAP envelope',
  hasType: (contentType) => /^(?:|text\/xml|application\/xml|application\/soap\+xml)$/.test(contentType),
  maxRefusalBytes: 256 * 1024,
  mayBeEmpty: false,
  urlKeyOf,
  unexpected,
};

export interface SoapCallsOptions extends EnvelopesOptions, ServiceCallsOptions {
  readonly maxSmallResponseBytes: number;
}

export interface SoapServiceCall extends ServiceCall {
  /** In the order of the contract, without the session. */
  readonly fields: RequestFields;
}

export class SoapCalls {
  readonly #options: SoapCallsOptions;
  readonly #sessions: SessionCalls;
  readonly #envelopes: Envelopes;

  /** @throws JobtailError config for a namespace that no request can carry */
  constructor(options: SoapCallsOptions) {
    if (!/^[!#-%'-;=?-[\]_a-z~]+$/.test(options.namespace)) {
      throw new JobtailError('config', 'service.namespace contains characters that are not allowed in a namespace', {
        hint: 'copy the targetNamespace from the WSDL of the service',
      });
    }
    this.#options = options;
    this.#sessions = new SessionCalls(options);
    this.#envelopes = new Envelopes(options);
  }

  /** The result without what was taken; null if the response was not read to its end. @throws JobtailError */
  call(call: SoapServiceCall): Promise<Value> {
    const { operation, fields, signal } = call;
    const jobId = String(fields['submittedJobInfoId'] ?? '');
    return this.#sessions.call(operation, jobId, (grant, count) => this.#attempt(call, grant, count), signal);
  }

  async #attempt(call: SoapServiceCall, grant: Grant, count: Count): Promise<Value> {
    const { operation, fields } = call;
    const { xml: body, headers } = await this.#envelopes.write(operation, inSession(fields, grant));
    const sent = { ...headers, 'user-agent': 'jobtail', ...grantHeaders(grant) };
    const request = { method: 'POST', url: this.#options.url, headers: sent, body } as const;
    const reading = { format: FORMAT, reader: this.#reader(operation, call), count };
    const { response, result } = await sendCall(call, this.#options, request, reading);
    if (result.kind === 'refusal')
      throw this.#refusal(operation, response, this.#problemIn(response, result.head, operation));
    if (result.kind !== 'success') return null;
    const { parsed } = result;
    if ('value' in parsed) return parsed.value;
    throw this.#refusal(operation, response, faultOf(parsed.fault));
  }

  #refusal(operation: Operation, response: HttpResponse, problem: Problem): JobtailError {
    const { status } = response;
    const fault = status === 200 || status === 500 ? 'a fault' : `a fault and status ${status}`;
    const how = problem.isOwn ? fault : `status ${status}`;
    return refusalOf({ operation, ...response, problem, how, urlKey: urlKeyOf(operation) }, this.#options);
  }

  /** The fault in the body; without an envelope, only the status describes the failure. */
  #problemIn(response: HttpResponse, head: Buffer, operation: Operation): Problem {
    try {
      if (FORMAT.hasType(response.contentType)) {
        const reader = this.#reader(operation, {});
        reader.push(head);
        const parsed = reader.finish();
        if ('fault' in parsed) return faultOf(parsed.fault);
      }
    } catch {
      // No envelope.
    }
    return { ...problemOf(head.toString()), isOwn: false };
  }

  #reader(operation: Operation, { lifted, onItem }: Taken): XmlReader {
    const { namespace, secrets, maxSmallResponseBytes } = this.#options;
    return new XmlReader({ operation, namespace, secrets, lifted, onItem, maxBytes: maxSmallResponseBytes });
  }
}

const faultOf = (words: string): Problem => ({ words, title: '', isOwn: true, isPage: false });
