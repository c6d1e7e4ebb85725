/** The part of `pg` that is used: it is optional, so its own types need not be there. */
declare module 'pg' {
  interface Queryable {
    query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: unknown[] }>;
  }

  export interface PoolClient extends Queryable {
    on(event: 'error' | 'notification', listener: () => void): this;
    /** With an error, the connection is closed. */
    release(error?: Error): void;
  }

  export class Pool {
    constructor(options: object);
    query: Queryable['query'];
    connect(): Promise<PoolClient>;
    on(event: 'error', listener: () => void): this;
    end(): Promise<void>;
  }
}
