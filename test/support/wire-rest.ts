/** A remote that speaks REST, for the tests of the wire, with what it did written down. */
import { HttpClient, type HttpLimits } from '../../src/remote/http/http-client.ts';
import { RestCapabilities } from '../../src/remote/rest/capabilities.ts';
import { RestJobService, RestRemote, type RestRemoteOptions } from '../../src/remote/rest/client.ts';
import type { CallEvent } from '../../src/remote/session-calls.ts';
import { GivenSession, remoteParts, TEST_LIMITS } from './wire-remote.ts';

export interface TestRest {
  readonly remote: RestRemote;
  readonly jobs: RestJobService;
  readonly session: GivenSession;
  readonly events: CallEvent[];
  /** What is known of the server. */
  readonly kept: Map<string, string>;
  /** What was reported of changes. */
  readonly changes: string[];
  close(): Promise<void>;
}

export interface TestRestOptions extends Partial<RestRemoteOptions> {
  readonly limits?: HttpLimits;
  readonly session?: GivenSession;
  readonly kept?: Map<string, string>;
  readonly now?: () => number;
}

export function createRest(url: string, options: TestRestOptions = {}): TestRest {
  const {
    limits = TEST_LIMITS,
    session = new GivenSession(),
    kept = new Map<string, string>(),
    now = () => 0,
    ...rest
  } = options;
  const http = new HttpClient({ limits });
  const events: CallEvent[] = [];
  const changes: string[] = [];
  const capabilities = new RestCapabilities({ kept, onChange: (what) => changes.push(what), now });
  const all: RestRemoteOptions = {
    ...{ ...remoteParts(events), url: `${new URL(url).origin}/heappe`, http, session, capabilities },
    ...rest,
  };
  const remote = new RestRemote(all);
  return { remote, jobs: new RestJobService(all), session, events, kept, changes, close: () => http.close() };
}
