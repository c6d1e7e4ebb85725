/** Calls of a REST service in a session; detects the address of each operation by the responses. */
import type { Grant } from '../../agent/ports.ts';
import { JobtailError } from '../../errors.ts';
import type { Operation } from '../../operations.ts';
import type { Lifted } from '../content/lifted.ts';
import { grantHeaders, SessionCalls, type SessionCallsOptions } from '../session-calls.ts';
import type { LiftRule } from './answer/scanner.ts';
import type { RestCapabilities } from './capabilities.ts';
import { type Address, REQUEST } from './contract.ts';
import { type Json, jsonObject } from './requests.ts';
import { type Outcome, Transport, type TransportOptions } from './transport.ts';

export interface RestCallsOptions extends TransportOptions, SessionCallsOptions {
  readonly capabilities: RestCapabilities;
}

export interface Call {
  readonly operation: Operation;
  /** The arguments without the session; they may depend on the address. */
  readonly members: (address: Address) => Readonly<Record<string, Json | undefined>>;
  readonly rule?: LiftRule;
  readonly lifted?: Lifted;
  readonly maxBytes: number;
  /** Whether the response may take as long as it makes progress. */
  readonly bulky?: boolean;
  /** Maximum time until the response begins; the usual limit if omitted. */
  readonly headersMs?: number | undefined;
  readonly onInvalid?: () => void;
  readonly signal: AbortSignal;
}

/** The form of session codes (docs/rest.md 4.1). */
const GUID_BYTES = 36;

type Answered = Exclude<Outcome, { kind: 'refusal' }>;

export class RestCalls {
  readonly #capabilities: RestCapabilities;
  readonly #sessions: SessionCalls;
  readonly #transport: Transport;
  #sessionBytes = GUID_BYTES;

  constructor(options: RestCallsOptions) {
    this.#capabilities = options.capabilities;
    this.#sessions = new SessionCalls(options);
    this.#transport = new Transport(options);
  }

  get sessionBytes(): number {
    return this.#sessionBytes;
  }

  /** @throws JobtailError */
  call(call: Call): Promise<Answered> {
    return this.#sessions.call(call.operation, (grant, count) => this.#attempt(call, grant, count), call.signal);
  }

  /** Tries the possible addresses of an operation, and keeps the one that works. */
  async #attempt(call: Call, grant: Grant, count: { bytes: number }): Promise<Answered> {
    const { operation } = call;
    let first: JobtailError | undefined;
    for (const address of this.#capabilities.addressesOf(operation)) {
      const outcome = await this.#send(call, address, grant, count);
      if (outcome.kind !== 'refusal') {
        this.#capabilities.foundAt(operation, address);
        return outcome;
      }
      if (outcome.reportsInvalid) call.onInvalid?.();
      if (!outcome.isWrongAddress) throw outcome.error;
      first ??= outcome.error;
    }
    throw first ?? new JobtailError('internal', `${operation} has no address`);
  }

  #send(call: Call, address: Address, grant: Grant, count: { bytes: number }): Promise<Outcome> {
    const { operation, members, rule, lifted, maxBytes, bulky, headersMs, signal } = call;
    this.#sessionBytes = grant.kind === 'session' ? Buffer.byteLength(grant.code) : 0;
    const session = grant.kind === 'session' ? { [REQUEST.sessionCode]: grant.code } : {};
    return this.#transport.send({
      ...{ operation, address, rule, lifted, maxBytes, count, headersMs, signal },
      headers: grantHeaders(grant),
      members: jsonObject({ ...members(address), ...session }),
      totalMs: bulky === true ? Number.POSITIVE_INFINITY : undefined,
    });
  }
}
