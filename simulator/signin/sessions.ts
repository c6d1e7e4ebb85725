/**
 * The users of the sandbox and their sessions (docs/dev/servers.md 3.2): one a user, shared by all of the user's clients.
 */
import { randomUUID } from 'node:crypto';

/** May be changed while the sandbox runs, as when a token is renewed. */
export interface SandboxUser {
  username: string;
  password: string;
  /** The token of the three token sign-ins. */
  token: string;
}

/** A session ends after so long without a call. */
const IDLE_MS = 15 * 60_000;

interface OpenSession {
  readonly user: SandboxUser;
  readonly code: string;
  /** The token that calls show instead of the code (`HEADER-AUTH-NEEDED`). */
  readonly bearer: string | undefined;
  usedAtMs: number;
}

/** What a call shows. */
interface ShownGrant {
  readonly sessionCode: string | undefined;
  /** The line `Authorization`. */
  readonly authorization: string | undefined;
}

export class Sessions {
  readonly #clock: () => number;
  #open: OpenSession[] = [];
  /** When sessions ended, by their code. */
  readonly #ended = new Map<string, number>();

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** The session code after a sign-in, the same one while the session lasts. With `bearer`, calls are to show that token instead. */
  begin(user: SandboxUser, bearer: string | undefined): string {
    this.#endIdle();
    const last = this.#open.find((session) => session.user === user);
    const code = last?.code ?? randomUUID();
    this.#open = this.#open.filter((session) => session.user !== user);
    this.#open.push({ user, code, bearer, usedAtMs: this.#clock() });
    return code;
  }

  /** The user of a call; keeps the session from idling out. Undefined if there is no valid session. */
  userOf({ sessionCode, authorization }: ShownGrant): SandboxUser | undefined {
    this.#endIdle();
    const token = /^Bearer (.+)$/.exec(authorization ?? '')?.[1];
    const session = this.#open.find(({ bearer, code }) =>
      bearer === undefined ? code === sessionCode : bearer === token,
    );
    if (session !== undefined) session.usedAtMs = this.#clock();
    return session?.user;
  }

  /** When the session with this code ended; undefined if there never was one. */
  endOf(code: string): number | undefined {
    return this.#ended.get(code);
  }

  /** Ends all sessions. */
  expire(): void {
    this.#end(this.#open, () => this.#clock());
  }

  #endIdle(): void {
    const idle = this.#open.filter(({ usedAtMs }) => usedAtMs <= this.#clock() - IDLE_MS);
    this.#end(idle, ({ usedAtMs }) => usedAtMs + IDLE_MS);
  }

  #end(sessions: readonly OpenSession[], atMs: (session: OpenSession) => number): void {
    for (const session of sessions) this.#ended.set(session.code, atMs(session));
    this.#open = this.#open.filter((session) => !sessions.includes(session));
  }
}
