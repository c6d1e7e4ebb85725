/**
 * Commands from operators, configurations and the service for jobs; only the owner of a job executes them. The client
 * that places a command ensures an owner: a job without one goes to the queue, and the next agent acquires it.
 */
import type { PassAnswer } from '../agent/pass/job-end.ts';
import type { JobId } from '../job.ts';
import type { Store } from '../store/store.ts';
import type { OpenOrder, Order } from './border.ts';
import type { Database } from './database.ts';
import type { Sql } from './tables.ts';

const QUEUE = 'waiting';
/** Of seconds until a row that waits is removed: as good as for ever. */
const NEVER = 2_000_000_000;

/** The rows of pg-boss, which are read here alone: each is a job that waits, for one that is taken is deleted. */
export const WAITING_ROWS = `{s}_boss.job WHERE name = '${QUEUE}'`;

/**
 * The jobs that wait for an owner, each of them once, as pg-boss keeps them. Who owns a job stands in `jobs`, and until
 * when in `agents`: an owner costs pg-boss nothing.
 */
export class Queue {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Makes it if it is not there. */
  async make(): Promise<void> {
    await this.#database.call((boss) => boss.createQueue(QUEUE, { policy: 'exclusive', retentionSeconds: NEVER }));
  }

  /** Changes nothing for a job that waits already. */
  async send(sql: Sql, jobId: JobId): Promise<void> {
    await this.#database.call((boss) => boss.send(QUEUE, { jobId }, { singletonKey: jobId, db: sql.db }));
  }

  /** Removes up to so many, which no other transaction removes; their ids as they stand there. */
  async take(sql: Sql, max: number): Promise<{ readonly jobId: string }[]> {
    const found = await this.#database.call((boss) => boss.fetch(QUEUE, { batchSize: max, db: sql.db }));
    const ids = found.map(({ id }) => id);
    if (ids.length > 0) await this.#database.call((boss) => boss.deleteJob(QUEUE, ids, { db: sql.db }));
    return found.map(({ data }) => ({ jobId: String((data as { jobId?: unknown } | null)?.jobId) }));
  }
}

/** A command without a client that waits. */
export const DONE = {};
const REFUSED = { error: 'the agent does not understand this order', hint: 'update the agents of the fleet' };
export type Answer = PassAnswer | typeof DONE;

export const ORDERS_CHANNEL = 'orders';

/** Placed in one transaction, which agents that acquire these jobs, or execute their commands, wait for. */
export const ORDERS_AT_ONCE = 100;

const COLUMNS = 'order_id::text AS "orderId", job_id AS "jobId", kind, body, is_applied AS "isApplied"';

export class Orders {
  readonly #database: Database;
  readonly #queue: Queue;

  constructor(database: Database, queue: Queue) {
    this.#database = database;
    this.#queue = queue;
  }

  /** The ids of the orders, by the ids of their jobs. */
  give(orders: readonly Order[]): Promise<string[]> {
    return this.#database.transaction((sql) => this.giveWithin(sql, orders));
  }

  async giveWithin(sql: Sql, orders: readonly Order[]): Promise<string[]> {
    const ids: string[] = [];
    // One transaction, for any number of commands.
    const sorted = [...orders].sort((a, b) => (a.jobId < b.jobId ? -1 : 1));
    for (const { jobId, kind, body = null } of sorted) {
      // The row is held until the end: the owner who finds that everything is done looks again behind this.
      const [job] = await sql.query<{ readonly owner: string | null }>(
        `INSERT INTO {s}.jobs (job_id, source) VALUES ($1, $2) ON CONFLICT (job_id) DO UPDATE SET job_id = excluded.job_id
         RETURNING owner`,
        [jobId, body?.source ?? 'command'],
      );
      const [row] = await sql.query<{ readonly orderId: string }>(
        'INSERT INTO {s}.orders (job_id, kind, body) VALUES ($1, $2, $3) RETURNING order_id::text AS "orderId"',
        [jobId, kind, body === null ? null : JSON.stringify(body)],
      );
      if (job?.owner == null) await this.#queue.send(sql, jobId);
      ids.push(row?.orderId ?? '');
    }
    await this.notify(sql);
    return ids;
  }

  /** Wakes agents up: there is something to be done, or to be taken. */
  async notify(sql: Sql): Promise<void> {
    await sql.query(`SELECT pg_notify('{s}_${ORDERS_CHANNEL}', '')`);
  }

  /** Undefined while it is open. */
  async answerOf(orderId: string): Promise<Answer | undefined> {
    const [row] = await this.#database.query<{ readonly answer: Answer | null }>(
      'SELECT answer FROM {s}.orders WHERE order_id = $1',
      [orderId],
    );
    return row === undefined ? DONE : (row.answer ?? undefined);
  }

  /** Commands without an answer for jobs without any other row, because no agent has had them yet. */
  async ofNew(): Promise<(OpenOrder & { readonly madeAt: number })[]> {
    const orders = await this.#database.query<OpenOrder & { readonly madeAt: number }>(
      `SELECT ${COLUMNS}, extract(epoch FROM made_at)::float * 1000 AS "madeAt"
       FROM {s}.orders JOIN {s}.jobs USING (job_id) WHERE state = 'ordered' AND answer IS NULL ORDER BY order_id`,
    );
    return this.#understood(this.#database.border.jobs(orders));
  }

  /**
   * Those without an answer, for jobs of an owner, the oldest first, but for some that are known. An order that this
   * version does not understand is answered with an error, so that it keeps no other one waiting.
   */
  async openOf(owner: string, known: readonly string[], max: number): Promise<OpenOrder[]> {
    const orders = await this.#database.query<OpenOrder>(
      `SELECT ${COLUMNS}
       FROM {s}.orders JOIN {s}.jobs USING (job_id) WHERE owner = $1 AND answer IS NULL AND order_id <> ALL($2::bigint[])
       ORDER BY order_id LIMIT ${max}`,
      [owner, known],
    );
    const sound = this.#understood(orders);
    const understood = new Set(sound.map(({ orderId }) => orderId));
    const refused = orders.flatMap(({ orderId }) => (understood.has(orderId) ? [] : [orderId]));
    await this.settle(this.#database, refused, REFUSED);
    return sound;
  }

  /** Within a fenced transaction, with the rows that they led to; without an answer, one is still to come. */
  async settle(sql: Sql, orderIds: readonly string[], answer: Answer | null): Promise<void> {
    if (orderIds.length === 0) return;
    await sql.query(`UPDATE {s}.orders SET is_applied = true, answer = $2 WHERE order_id = ANY($1::bigint[])`, [
      orderIds,
      answer === null ? null : JSON.stringify(answer),
    ]);
  }

  #understood<Found extends OpenOrder>(orders: readonly Found[]): Found[] {
    return orders.flatMap((order) => {
      const parsed = this.#database.border.order(order);
      return parsed === undefined ? [] : [{ ...order, ...parsed }];
    });
  }

  /** Within a fenced transaction, in which the row of the job is held. */
  async hasOpen(sql: Sql, jobId: JobId): Promise<boolean> {
    const rows = await sql.query('SELECT 1 FROM {s}.orders WHERE job_id = $1 AND answer IS NULL LIMIT 1', [jobId]);
    return rows.length > 0;
  }
}

/** What is known of an order by now; a null answer is still to come. */
export interface Settled {
  readonly jobId: JobId;
  readonly orderId: string;
  readonly answer: Answer | null;
}

interface Asked {
  readonly jobId: JobId;
  /** In the store. */
  readonly requestId: number;
}

/**
 * Orders for the jobs that this agent owns: brought into its store, where the agent finds them, and answered from
 * there.
 */
export class Fulfilment {
  readonly #store: Store;
  readonly #now: () => number;
  /** Commands for a pass that was requested in the store, by their ids. */
  readonly #asked = new Map<string, Asked>();

  constructor(store: Store, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  /** Commands that wait for what was requested in the store. */
  get asked(): string[] {
    return [...this.#asked.keys()];
  }

  /** Brings orders that are new here into the store; what is to be written of them. */
  apply(orders: readonly OpenOrder[]): Settled[] {
    if (orders.length === 0) return [];
    return this.#store.transaction(() => orders.map((order) => this.#apply(order)));
  }

  /** Orders whose answer has come. */
  answered(): Settled[] {
    return [...this.#asked].flatMap(([orderId, { jobId, requestId }]) => {
      const request = this.#store.requests.get(requestId);
      if (request !== undefined && request.answer === null) return [];
      return [{ jobId, orderId, answer: JSON.parse(request?.answer ?? '{}') as Answer }];
    });
  }

  /** Their answers are written. */
  forget(settled: readonly Settled[]): void {
    for (const { orderId } of settled) this.#asked.delete(orderId);
  }

  /** Whether a client waits for an answer about a job. */
  isAsked(jobId: JobId): boolean {
    return [...this.#asked.values()].some((asked) => asked.jobId === jobId);
  }

  /** Forgets the commands of a job that another agent owns. */
  forgetJob(jobId: JobId): void {
    for (const [orderId, asked] of this.#asked) if (asked.jobId === jobId) this.#asked.delete(orderId);
  }

  #apply(order: OpenOrder): Settled {
    const { jobId, orderId, kind, isApplied } = order;
    if (kind !== 'watch' && this.#store.jobs.get(jobId) === undefined) {
      return { jobId, orderId, answer: { error: `job ${jobId} is not watched` } satisfies PassAnswer };
    }
    if (!isApplied) this.#change(order);
    if (kind !== 'sync' && kind !== 'unwatch') return { jobId, orderId, answer: DONE };
    this.#asked.set(orderId, { jobId, requestId: this.#store.requests.add(jobId, kind, this.#now()) });
    return { jobId, orderId, answer: null };
  }

  #change({ jobId, kind, body }: OpenOrder): void {
    const { jobs } = this.#store;
    const job = jobs.get(jobId);
    if (kind === 'watch' && body !== null) jobs.watch(body, this.#now());
    else if (kind === 'unwatch') jobs.unwatch(jobId, 'ending');
    else if (kind === 'end') jobs.unwatch(jobId, 'ended');
    else if (kind === 'resume') jobs.resume(jobId);
    else if (kind === 'drop' && job?.source === 'config' && job.state === 'watched') jobs.setState(jobId, 'ending');
  }
}
