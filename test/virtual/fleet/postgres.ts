/**
 * A simulated PostgreSQL, in the place of the package that reaches one: sessions with transactions and notifications, over
 * the simulated time. `statements.ts` has what each statement of src/fleet does; `contract.test.ts` compares all of it
 * with a real server.
 */
import type {
  ConnectionOptions,
  ConnectionPool,
  DatabaseSession,
  Listener,
} from '../../../src/fleet/database/connections.ts';
import type { FleetAddress } from '../../../src/fleet/database/database.ts';
import { Secrets } from '../../../src/redact.ts';
import type { Clock } from '../../../src/system/clock.ts';
import type { Chance } from '../chance.ts';
import { SimulatedProcess, type SimulatedTime } from '../time.ts';
import { execute, Unknown } from './statements.ts';
import { Blocked, Tables, Transaction } from './tables.ts';

/** As the product sets them. */
const IDLE_MS = 5_000;
const QUERY_MS = 4_000;
/** Of the first address that a pool tries. */
const REFUSED_MS = 3;

/** An agent as its database sees it. */
export interface FleetProcess {
  readonly process: SimulatedProcess;
  readonly clock: Clock;
  /** Whether what it sends arrives, and what is sent to it. */
  way: { out: boolean; back: boolean };
}

/** What one connection does, one statement after the other. */
class ServerSession {
  readonly member: FleetProcess;
  readonly listener: Listener | undefined;
  transaction: Transaction | undefined;
  last: Promise<unknown> = Promise.resolve();
  cancelIdle = () => {};

  constructor(member: FleetProcess, listener?: Listener) {
    this.member = member;
    this.listener = listener;
  }
}

export class SimulatedPostgres {
  readonly tables = new Tables();
  /** Nothing listens there. */
  isAway = false;
  /** Added to the way of each statement. */
  slowMs = 0;
  statements = 0;
  /** Called with each statement that arrives. */
  onStatement: (text: string) => void = () => {};
  /** Called with what it does not have. */
  onUnknown: (what: string) => void = () => {};
  readonly #time: SimulatedTime;
  readonly #chance: Chance;
  readonly #clock: Clock;
  readonly #sessions = new Set<ServerSession>();

  constructor(time: SimulatedTime, chance: Chance) {
    this.#time = time;
    this.#chance = chance;
    this.#clock = time.clockOf(new SimulatedProcess());
  }

  /** Milliseconds since 1970, by its own clock, which no step of another one changes. */
  readonly now = (): number => 1_800_000_000_000 + this.#time.passedMs;

  /** For one process. */
  address(member: FleetProcess): FleetAddress {
    const connect = async ({ listener }: ConnectionOptions): Promise<ConnectionPool> => {
      if (listener !== undefined) return this.#listening(new ServerSession(member, listener), listener);
      return {
        query: async (text, values) => {
          const session = this.#session(new ServerSession(member));
          try {
            return await session.query(text, values);
          } finally {
            session.release();
          }
        },
        connect: async () => this.#session(new ServerSession(member)),
        end: async () => {},
      };
    };
    return { url: 'postgresql://db.example.org/jobtail', schema: 'jobtail', secrets: new Secrets(), connect };
  }

  /** The connections of a process, or of all, are lost: what was not committed is undone. */
  disconnect(process?: SimulatedProcess): void {
    for (const session of this.#sessions)
      if (process === undefined || session.member.process === process) this.#close(session);
  }

  /** The server ends, and another one has the rows of a backup from now on, or the same ones. */
  stop(): void {
    this.isAway = true;
    this.disconnect();
  }

  /** One connection, which is opened again by the first statement after it was lost. */
  #listening(first: ServerSession, listener: Listener): ConnectionPool {
    let current = first;
    let last: Promise<unknown> = Promise.resolve();
    const query = async (text: string, values?: readonly unknown[]) => {
      const isNew = !this.#sessions.has(current);
      if (isNew) current = new ServerSession(first.member, listener);
      const { query: run, release } = this.#session(current);
      try {
        const rows = await run(text, values);
        if (isNew) listener.onConnect();
        return rows;
      } catch (error) {
        release();
        throw error;
      }
    };
    return {
      query: (text, values) => {
        const done = last.then(() => query(text, values));
        last = done.catch(() => {});
        return done;
      },
      connect: () => Promise.reject(new Error('it has one connection')),
      end: async () => this.#close(current),
    };
  }

  #session(session: ServerSession): DatabaseSession {
    this.#sessions.add(session);
    return {
      query: async (text, values = []) => ({
        rows: await this.#call(session, () => this.#statement(session, text, values)),
      }),
      // What the server does not hear of, its own limit ends.
      release: () => void (session.member.way.out && this.#close(session)),
    };
  }

  #close(session: ServerSession): void {
    session.cancelIdle();
    session.transaction?.rollback();
    this.#sessions.delete(session);
  }

  async #statement(session: ServerSession, text: string, values: readonly unknown[]): Promise<unknown[]> {
    const { transaction } = session;
    this.onStatement(text);
    if (text === 'BEGIN') session.transaction = new Transaction(this.tables, this.now);
    else if (text === 'COMMIT') this.#commit(transaction);
    else if (transaction !== undefined) return this.#run(transaction, text, values);
    else {
      const own = new Transaction(this.tables, this.now);
      session.transaction = own;
      try {
        const rows = await this.#run(own, text, values);
        this.#commit(own);
        return rows;
      } finally {
        own.rollback();
        session.transaction = undefined;
      }
    }
    return [];
  }

  /** Sends one statement of a process and waits for its result until its time limit; none if the process ended. */
  #call<T>(session: ServerSession, work: () => Promise<T>): Promise<T> {
    const { clock, way } = session.member;
    this.statements += 1;
    return new Promise((resolve, reject) => {
      const cancels: (() => void)[] = [];
      const settle = (end: () => void) => {
        for (const cancel of cancels.splice(0)) cancel();
        end();
      };
      const back = (delayMs: number, end: () => void) => cancels.push(clock.timer(delayMs, () => settle(end)));
      back(QUERY_MS, () => reject(codeError('ETIMEDOUT', 'Query read timeout')));
      if (!way.out) return;
      if (this.isAway) {
        back(REFUSED_MS, () => reject(codeError('ECONNREFUSED', 'connect ECONNREFUSED 192.0.2.1:5432')));
        return;
      }
      this.#clock.timer(this.#wayMs(), () => {
        const done = session.last.then(async () => {
          if (!this.#sessions.has(session)) throw codeError('57P01', 'terminating connection');
          session.cancelIdle();
          try {
            return await work();
          } finally {
            if (session.transaction?.isOver === false)
              session.cancelIdle = this.#clock.timer(IDLE_MS, () => this.#close(session));
          }
        });
        session.last = done.catch(() => {});
        done.then(
          (result) => way.back && back(this.#wayMs(), () => resolve(result)),
          (error: Error) => way.back && back(this.#wayMs(), () => reject(error)),
        );
      });
    });
  }

  /** Runs a statement, after the transactions for which it has to wait. */
  async #run(transaction: Transaction, text: string, values: readonly unknown[]): Promise<unknown[]> {
    for (;;) {
      if (transaction.isOver) throw codeError('57P01', 'terminating connection');
      try {
        return transaction.run(() => execute(transaction, text, values));
      } catch (error) {
        if (error instanceof Unknown) this.onUnknown(error.message);
        if (!(error instanceof Blocked)) throw error;
        await error.by.ended;
      }
    }
  }

  #commit(transaction: Transaction | undefined): void {
    if (transaction === undefined || transaction.isOver) throw codeError('57P01', 'terminating connection');
    transaction.commit();
    for (const session of this.#sessions) {
      const { member, listener } = session;
      if (listener === undefined || !transaction.notices.has(listener.channel) || !member.way.back) continue;
      member.clock.timer(this.#wayMs(), () => this.#sessions.has(session) && listener.onNotice());
    }
  }

  #wayMs(): number {
    return this.#chance.spread(0.2, 3) + this.slowMs * this.#chance.next();
  }
}

const codeError = (code: string, message: string) => Object.assign(new Error(message), { code });
