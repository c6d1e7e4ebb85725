/**
 * A simulated PostgreSQL, in the place of the package that reaches one: sessions with transactions, notifications and
 * the queue of pg-boss, over the simulated time. `statements.ts` has what each statement of src/fleet does;
 * `contract.test.ts` compares all of it with a real server.
 */
import type { FetchedJob, PgDatabase, PgPool, PgTransaction } from 'pg-boss';
import type { Driver } from '../../../src/fleet/database.ts';
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

interface Listener {
  readonly member: FleetProcess;
  readonly channel: string;
  readonly onNotice: (payload: string) => void;
  readonly onReconnect: () => void;
}

/** An agent as its database sees it. */
export interface FleetProcess {
  readonly process: SimulatedProcess;
  readonly clock: Clock;
  /** Whether what it sends arrives, and what is sent to it. */
  way: { out: boolean; back: boolean };
}

/** What one connection does, one statement after the other. */
class ServerSession {
  transaction: Transaction | undefined;
  last: Promise<unknown> = Promise.resolve();
  cancelIdle = () => {};
}

export class SimulatedPostgres {
  readonly tables = new Tables();
  /** Nothing listens there. */
  isAway = false;
  /** Added to the way of each statement. */
  slowMs = 0;
  statements = 0;
  /** Called with what it does not have. */
  onUnknown: (what: string) => void = () => {};
  readonly #time: SimulatedTime;
  readonly #chance: Chance;
  readonly #clock: Clock;
  readonly #sessions = new Map<ServerSession, FleetProcess>();
  readonly #listeners = new Set<Listener>();

  constructor(time: SimulatedTime, chance: Chance) {
    this.#time = time;
    this.#chance = chance;
    this.#clock = time.clockOf(new SimulatedProcess());
  }

  /** Milliseconds since 1970, by its own clock, which no step of another one changes. */
  readonly now = (): number => 1_800_000_000_000 + this.#time.passedMs;

  /** For one process. */
  driver(member: FleetProcess): Driver {
    const pool = new Pool(this, member);
    return async () => ({ PgBoss: bossOver(pool) });
  }

  /** The connections of a process, or of all, are lost: what was not committed is undone. */
  disconnect(process?: SimulatedProcess): void {
    const isMeant = (one: FleetProcess) => process === undefined || one.process === process;
    for (const [session, owner] of this.#sessions) if (isMeant(owner)) this.close(session);
    for (const listener of [...this.#listeners].filter(({ member }) => isMeant(member))) {
      if (!listener.member.process.isAlive) this.#listeners.delete(listener);
      else listener.member.clock.timer(this.#chance.spread(100, 3_000), () => this.#reconnect(listener));
    }
  }

  /** The server ends, and another one has the rows of a backup from now on, or the same ones. */
  stop(): void {
    this.isAway = true;
    this.disconnect();
  }

  openSession(member: FleetProcess): ServerSession {
    const session = new ServerSession();
    this.#sessions.set(session, member);
    return session;
  }

  close(session: ServerSession): void {
    session.cancelIdle();
    session.transaction?.rollback();
    this.#sessions.delete(session);
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Sends one statement of a process and waits for its result, up to its time limit. A process that has ended gets none.
   */
  call<T>(member: FleetProcess, session: ServerSession, work: () => Promise<T>): Promise<T> {
    const { clock, way } = member;
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
              session.cancelIdle = this.#clock.timer(IDLE_MS, () => this.close(session));
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
  async run(transaction: Transaction, text: string, values: readonly unknown[]): Promise<{ rows: unknown[] }> {
    for (;;) {
      if (transaction.isOver) throw codeError('57P01', 'terminating connection');
      try {
        return { rows: transaction.run(() => execute(transaction, text, values)) };
      } catch (error) {
        if (error instanceof Unknown) this.onUnknown(error.message);
        if (!(error instanceof Blocked)) throw error;
        await error.by.ended;
      }
    }
  }

  commit(transaction: Transaction): void {
    if (transaction.isOver) throw codeError('57P01', 'terminating connection');
    transaction.commit();
    for (const listener of this.#listeners) {
      const { member, channel, onNotice } = listener;
      if (!transaction.notices.has(channel) || !member.way.back) continue;
      member.clock.timer(this.#wayMs(), () => this.#listeners.has(listener) && onNotice(''));
    }
  }

  begin(): Transaction {
    return new Transaction(this.tables, this.now);
  }

  #reconnect(listener: Listener): void {
    if (!this.#listeners.has(listener)) return;
    const { member, onReconnect } = listener;
    if (!this.isAway && member.way.out && member.way.back) onReconnect();
    else member.clock.timer(1_000, () => this.#reconnect(listener));
  }

  #wayMs(): number {
    return this.#chance.spread(0.2, 3) + this.slowMs * this.#chance.next();
  }
}

class Pool implements PgPool {
  readonly #postgres: SimulatedPostgres;
  readonly #member: FleetProcess;

  constructor(postgres: SimulatedPostgres, member: FleetProcess) {
    this.#postgres = postgres;
    this.#member = member;
  }

  async open(): Promise<void> {}
  async close(): Promise<void> {}

  async executeSql(text: string, values: readonly unknown[] = []): Promise<{ rows: unknown[] }> {
    const postgres = this.#postgres;
    return this.#inSession(async (session) => {
      const transaction = postgres.begin();
      session.transaction = transaction;
      try {
        const result = await postgres.run(transaction, text, values);
        postgres.commit(transaction);
        return result;
      } finally {
        transaction.rollback();
      }
    });
  }

  async beginTransaction(): Promise<PgTransaction> {
    const [postgres, member] = [this.#postgres, this.#member];
    const session = postgres.openSession(member);
    // What the server does not hear of, its own limit ends.
    const over = () => void (member.way.out && postgres.close(session));
    try {
      const transaction = await postgres.call(member, session, async () => {
        session.transaction = postgres.begin();
        return session.transaction;
      });
      const run = <T>(work: () => Promise<T>) => postgres.call(member, session, work);
      return {
        db: { executeSql: (text, values = []) => run(() => postgres.run(transaction, text, values)) },
        commit: () => run(async () => postgres.commit(transaction)).finally(over),
        rollback: async () => over(),
      };
    } catch (error) {
      over();
      throw error;
    }
  }

  async listen(channel: string, onNotice: (payload: string) => void, onReconnect: () => void) {
    const [postgres, member] = [this.#postgres, this.#member];
    return this.#inSession(async () => {
      const close = postgres.listen({ member, channel, onNotice, onReconnect });
      return { close: async () => close() };
    });
  }

  #inSession<T>(work: (session: ServerSession) => Promise<T>): Promise<T> {
    const postgres = this.#postgres;
    const session = postgres.openSession(this.#member);
    // It takes effect although the process no longer waits for it.
    return postgres.call(this.#member, session, () => work(session).finally(() => postgres.close(session)));
  }
}

/** The queue of pg-boss: its calls are statements of their own. */
function bossOver(pool: PgPool) {
  return class PgBoss {
    on(): this {
      return this;
    }

    async start(): Promise<this> {
      return this;
    }

    async stop(): Promise<void> {}

    getDb(): PgPool {
      return pool;
    }

    async createQueue(): Promise<void> {
      await pool.executeSql('boss.createQueue');
    }

    async send(_: string, data: object, { singletonKey, db = pool }: WithDatabase & { readonly singletonKey: string }) {
      await db.executeSql('boss.send', [singletonKey, data]);
      return null;
    }

    async fetch(_: string, { batchSize, db = pool }: WithDatabase & { readonly batchSize: number }) {
      return (await db.executeSql('boss.fetch', [batchSize])).rows as FetchedJob[];
    }

    async deleteJob(_: string, ids: readonly string[], { db = pool }: WithDatabase): Promise<void> {
      await db.executeSql('boss.deleteJob', [ids]);
    }
  };
}

interface WithDatabase {
  readonly db?: PgDatabase;
}

const codeError = (code: string, message: string) => Object.assign(new Error(message), { code });
