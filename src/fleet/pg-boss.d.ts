/** The part of `pg-boss` 12.35.0 that is used: it is optional, so its own types need not be there. */
declare module 'pg-boss' {
  export interface PgDatabase {
    executeSql(text: string, values?: readonly unknown[]): Promise<{ rows: unknown[] }>;
  }

  export interface PgTransaction {
    readonly db: PgDatabase;
    commit(): Promise<void>;
    /** Never rejects. */
    rollback(): Promise<void>;
  }

  export interface PgPool extends PgDatabase {
    open(): Promise<void>;
    close(): Promise<void>;
    beginTransaction(): Promise<PgTransaction>;
    listen(
      channel: string,
      onNotification: (payload: string) => void,
      onReconnect: () => void,
    ): Promise<{ close(): Promise<void> }>;
  }

  /** Which job, and which owner of it: `retryCount` goes up with each. */
  export interface Attempt {
    readonly id: string;
    readonly retryCount: number;
  }

  export interface FetchedJob extends Attempt {
    readonly data: unknown;
    readonly heartbeatSeconds: number;
    readonly expireInSeconds: number;
  }

  interface WithDatabase {
    readonly db?: PgDatabase;
  }

  interface Settled {
    /** The ids that the call was good for. */
    readonly settled?: readonly string[];
  }

  export class PgBoss {
    constructor(options: object);
    on(event: 'error' | 'warning', listener: (what: unknown) => void): this;
    start(): Promise<this>;
    stop(options: { readonly graceful: boolean; readonly close?: boolean }): Promise<void>;
    getDb(): PgPool;
    createQueue(name: string, options: object): Promise<void>;
    getQueue(name: string): Promise<{ readonly heartbeatSeconds?: number }>;
    updateQueue(name: string, options: { readonly heartbeatSeconds: number }): Promise<void>;
    supervise(name: string): Promise<void>;
    send(
      name: string,
      data: object,
      options: WithDatabase & { readonly singletonKey: string; readonly priority?: number },
    ): Promise<string | null>;
    fetch(
      name: string,
      options: WithDatabase & {
        readonly batchSize: number;
        readonly minPriority?: number;
        readonly maxPriority?: number;
      },
    ): Promise<FetchedJob[]>;
    touch(name: string, attempts: readonly Attempt[], options?: WithDatabase): Promise<Settled>;
    complete(name: string, attempts: readonly Attempt[], data: null, options?: WithDatabase): Promise<Settled>;
    fail(name: string, attempts: readonly Attempt[], data: null, options?: WithDatabase): Promise<Settled>;
  }
}
