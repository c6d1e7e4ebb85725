/** The part of `pg-boss` 12.35.0 that is used: it is optional, so its own types need not be there. */
declare module 'pg-boss' {
  export interface PgDatabase {
    executeSql(text: string, values?: readonly unknown[]): Promise<{ rows: unknown[] }>;
  }

  export interface PgTransaction {
    readonly db: PgDatabase;
    commit(): Promise<void>;
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

  export interface FetchedJob {
    readonly id: string;
    readonly data: unknown;
  }

  interface WithDatabase {
    readonly db?: PgDatabase;
  }

  export class PgBoss {
    constructor(options: object);
    on(event: 'error' | 'warning', listener: (what: unknown) => void): this;
    start(): Promise<this>;
    stop(options: { readonly graceful: boolean; readonly close?: boolean }): Promise<void>;
    getDb(): PgPool;
    createQueue(name: string, options: object): Promise<void>;
    send(name: string, data: object, options: WithDatabase & { readonly singletonKey: string }): Promise<string | null>;
    fetch(name: string, options: WithDatabase & { readonly batchSize: number }): Promise<FetchedJob[]>;
    deleteJob(name: string, ids: readonly string[], options: WithDatabase): Promise<unknown>;
  }
}
