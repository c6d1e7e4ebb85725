/** Files with secrets, a sign-in service on 127.0.0.1 that answers as a test wants, and a SignIn against it. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { AuthSettings } from '../../../src/auth.ts';
import type { JobtailError } from '../../../src/errors.ts';
import { Secrets } from '../../../src/redact.ts';
import { HttpClient } from '../../../src/remote/http/http-client.ts';
import { SignIn, type SignInEvent, type SignInOptions } from '../../../src/remote/signin/sign-in.ts';
import { failureOf as anyFailureOf } from '../../support/errors.ts';
import { directoryOfFile } from '../../support/temp-directory.ts';
import { bodyOf, startHttpServer, type WireServer } from '../../support/wire-server.ts';

export interface Received {
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

export interface Answer {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

export const CODE = '5d5c2d66-06ab-4b0c-9c3b-1f6e2f0c1a11';
export const NEVER = new AbortController().signal;

/** A directory of the test file it is called in. */
export function secretDirectory() {
  const directory = directoryOfFile();
  const path = (name: string) => join(directory, name);
  const write = async (name: string, content: string | Uint8Array, mode = 0o600) => {
    await writeFile(path(name), content, { mode });
    return path(name);
  };
  return { path, write };
}

/** A server and a client for the tests of one file. `answer` is asked for every request; the default is a session code. */
export function signInService() {
  const service = {
    baseUrl: '',
    received: [] as Received[],
    /** Connections that ended before their answer was sent. */
    givenUp: 0,
    answer: (() => ({ body: JSON.stringify(CODE) })) as (request: Received) => Answer | Promise<Answer>,
  };
  const usual = service.answer;
  const http = new HttpClient({ limits: { connectMs: 10_000, headersMs: 20_000, idleMs: 20_000, totalMs: 20_000 } });
  let server: WireServer | undefined;

  beforeAll(async () => {
    server = await startHttpServer(async (request, response) => {
      response.on('close', () => {
        if (!response.writableFinished) service.givenUp += 1;
      });
      const { method = '', url = '', rawHeaders } = request;
      const received = { method, url, rawHeaders, body: await bodyOf(request) };
      service.received.push(received);
      const { status = 200, headers = { 'Content-Type': 'application/json' }, body } = await service.answer(received);
      response.writeHead(status, headers).end(body);
    });
    service.baseUrl = `http://127.0.0.1:${server.port}`;
  });
  afterEach(() => {
    service.received = [];
    service.givenUp = 0;
    service.answer = usual;
  });
  afterAll(async () => {
    await http.close();
    await server?.close();
  });

  /** A SignIn with a clock that stands still until a test moves it, and pauses of their full nominal length. */
  function signIn(auth: AuthSettings, options: Partial<SignInOptions> = {}) {
    const events: SignInEvent[] = [];
    const clock = { nowMs: 1000 };
    const session = new SignIn({
      baseUrl: service.baseUrl,
      auth,
      http,
      signsInAgain: true,
      nowMs: () => clock.nowMs,
      random: () => 1,
      env: {},
      secrets: new Secrets(),
      onWarning: () => undefined,
      onSignIn: (event) => events.push(event),
      ...options,
    });
    return { session, events, clock };
  }
  return { service, signIn };
}

/** Settings of the method `password` with all defaults. */
export function passwordSettings(path: string): AuthSettings {
  return {
    method: 'password',
    username: 'alice',
    secret: { kind: 'file', path },
    path: '/service/UserAndLimitationManagement',
    operation: null,
    sessionCodeField: null,
    sessionFaultPattern: null,
  };
}

/** The error that `promise` must reject with; none of `secrets` may be anywhere in it. */
export async function failureOf(promise: Promise<unknown>, secrets: readonly string[]): Promise<JobtailError> {
  const failure = await anyFailureOf(promise);
  expectNoSecret(failure, secrets);
  return failure;
}

export function expectNoSecret(value: unknown, secrets: readonly string[]): void {
  const everything = [inspect(value, { depth: null, showHidden: true }), JSON.stringify(value)];
  if (value instanceof Error) everything.push(value.message, String(value.stack));
  for (const secret of secrets) expect(everything.join('\n')).not.toContain(secret);
}
