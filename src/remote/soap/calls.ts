/** Calls of one SOAP service in a session: writes and sends an envelope, and reads the response. */
import type { Grant } from '../../agent/ports.ts';
import { JobtailError } from '../../errors.ts';
import type { Operation } from '../../operations.ts';
import type { Lifted } from '../content/lifted.ts';
import { grantHeaders, SessionCalls, type SessionCallsOptions } from '../session-calls.ts';
import { Envelopes, type EnvelopesOptions, type Fields, inSession } from './envelope.ts';
import { Transport, type TransportOptions } from './transport.ts';

export interface SoapCallsOptions extends EnvelopesOptions, TransportOptions, SessionCallsOptions {}

export interface Call {
  readonly operation: Operation;
  /** In the order of the contract, without the session. */
  readonly fields: Fields;
  readonly lifted?: Lifted;
  /** Whether the response may take as long as it makes progress. */
  readonly bulky?: boolean;
  /** Maximum time until the response begins; the usual limit if omitted. */
  readonly headersMs?: number | undefined;
  readonly signal: AbortSignal;
}

export class SoapCalls {
  readonly #sessions: SessionCalls;
  readonly #envelopes: Envelopes;
  readonly #transport: Transport;

  /** @throws JobtailError config for a namespace that no request can carry */
  constructor(options: SoapCallsOptions) {
    if (!/^[!#-%'-;=?-[\]_a-z~]+$/.test(options.namespace)) {
      throw new JobtailError('config', 'service.namespace contains characters that are not allowed in a namespace', {
        hint: 'copy the targetNamespace from the WSDL of the service',
      });
    }
    this.#sessions = new SessionCalls(options);
    this.#envelopes = new Envelopes(options);
    this.#transport = new Transport(options);
  }

  /** The content of the response element; undefined if it was not read to its end. @throws JobtailError */
  call(call: Call): Promise<unknown> {
    return this.#sessions.call(call.operation, (grant, count) => this.#attempt(call, grant, count), call.signal);
  }

  async #attempt(call: Call, grant: Grant, count: { bytes: number }): Promise<unknown> {
    const { operation, fields, lifted, bulky, headersMs, signal } = call;
    const headers = { 'user-agent': 'jobtail', ...grantHeaders(grant) };
    const envelope = await this.#envelopes.write(operation, inSession(fields, grant));
    const rest = await this.#transport.send({
      ...{ operation, lifted, count, headersMs, signal },
      envelope: { ...envelope, headers: { ...envelope.headers, ...headers } },
      totalMs: bulky === true ? Number.POSITIVE_INFINITY : undefined,
    });
    return rest && (await this.#envelopes.read(operation, rest));
  }
}
