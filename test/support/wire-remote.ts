/** A remote for the tests of the wire, with what it did written down. */
import { tmpdir } from 'node:os';
import type { Grant, Session } from '../../src/agent/ports/server.ts';
import type { JobtailError } from '../../src/errors.ts';
import { type JobId, parseJobId, parseTaskId, type TaskId } from '../../src/job.ts';
import { Secrets } from '../../src/redact.ts';
import type { SpillPlace } from '../../src/remote/content/response-texts.ts';
import { HttpClient, type HttpLimits } from '../../src/remote/http/http-client.ts';
import type { CallEvent } from '../../src/remote/session-calls.ts';
import { SoapRemote, type SoapRemoteOptions } from '../../src/remote/soap/client.ts';
import { NAMESPACE } from './wire-envelopes.ts';

export const SESSION_CODE = '7d2c6a1e-90d5-4b0c-8f4e-3a5b6c7d8e9f';

export function jobId(text: string): JobId {
  const id = parseJobId(text);
  if (id === undefined) throw new Error(`${text} is no job id`);
  return id;
}

export function taskId(text: string): TaskId {
  const id = parseTaskId(text);
  if (id === undefined) throw new Error(`${text} is no task id`);
  return id;
}

export const JOB = jobId('501');
export const TASK = taskId('9001');

/** Hands out the given grants, the last one again and again. */
export class GivenSession implements Session {
  readonly lostGrants: Grant[] = [];
  readonly #grants: Grant[];

  constructor(...grants: Grant[]) {
    this.#grants = grants.length === 0 ? [{ kind: 'session', code: SESSION_CODE }] : grants;
  }

  async current(): Promise<Grant> {
    const [grant] = this.#grants;
    if (grant === undefined) throw new Error('no grant');
    return grant;
  }

  lost(grant: Grant): void {
    this.lostGrants.push(grant);
    if (this.#grants.length > 1) this.#grants.shift();
  }

  refused(grant: Grant, error: JobtailError): JobtailError {
    this.lost(grant);
    return error;
  }

  async hasOtherSecret(): Promise<boolean> {
    return false;
  }
}

/** A place with room without end. */
export function spillTo(directory: string, memoryBytes = 1024 * 1024): SpillPlace {
  return { directory, memoryBytes };
}

export const TEST_LIMITS: HttpLimits = { connectMs: 10_000, headersMs: 10_000, idleMs: 10_000, totalMs: 20_000 };

/** What every remote of a test is made of; calls are written down. */
export function remoteParts(events: CallEvent[]) {
  return {
    secrets: new Secrets(),
    spill: spillTo(tmpdir()),
    maxSmallResponseBytes: 4 * 1024 * 1024,
    isSessionFault: () => false,
    untilAllowed: async () => {},
    onCall: (event: CallEvent) => void events.push(event),
  };
}

export function createRemote(url: string, options: Partial<SoapRemoteOptions> = {}) {
  const http = new HttpClient({ limits: TEST_LIMITS });
  const usual = { namespace: NAMESPACE, url, soapVersion: '1.1', http, session: new GivenSession() } as const;
  const remote = new SoapRemote({ ...remoteParts([]), ...usual, ...options });
  return { remote, close: () => http.close() };
}
