/**
 * Commands from operators, configurations and the service for jobs; only the owner of a job executes them. A job without
 * an owner waits for one from its first open command on, and the next agent acquires it.
 */
import type { PassAnswer } from '../agent/pass/complete-pass.ts';
import type { JobId } from '../job.ts';
import type { Store } from '../store/store.ts';
import type { Command, OpenCommand } from './border.ts';
import type { Database } from './database.ts';
import { idsOf, type LeasedJob } from './register.ts';
import type { Sql } from './tables.ts';

/** The answer of a command for which no client waits. */
export const DONE = {};
const REFUSED = { error: 'the agent does not understand this command', hint: 'update the agents of the fleet' };
export type Answer = PassAnswer | typeof DONE;

export const COMMANDS_CHANNEL = 'orders';

/** Limits how long agents wait that acquire these jobs or execute their commands. */
export const COMMANDS_AT_ONCE = 100;

const COLUMNS = 'order_id::text AS "commandId", job_id AS "jobId", kind, body, is_applied AS "isApplied"';

export class Commands {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Places commands. Returns their ids, by job id. */
  give(commands: readonly Command[]): Promise<string[]> {
    return this.#database.transaction((sql) => this.giveWithin(sql, commands));
  }

  async giveWithin(sql: Sql, commands: readonly Command[]): Promise<string[]> {
    const ids: string[] = [];
    // Sorted, so that two transactions never wait for each other.
    const sorted = [...commands].sort((a, b) => (a.jobId < b.jobId ? -1 : 1));
    for (const { jobId, kind, body = null } of sorted) {
      // Locks the row: an owner that finds no more work checks again after this transaction.
      await sql.query(
        `INSERT INTO {s}.jobs (job_id, source, waiting_since) VALUES ($1, $2, now()) ON CONFLICT (job_id) DO UPDATE
         SET waiting_since = CASE WHEN jobs.owner IS NULL THEN coalesce(jobs.waiting_since, now()) END`,
        [jobId, body?.source ?? 'command'],
      );
      const [row] = await sql.query<{ readonly commandId: string }>(
        'INSERT INTO {s}.orders (job_id, kind, body) VALUES ($1, $2, $3) RETURNING order_id::text AS "commandId"',
        [jobId, kind, body === null ? null : JSON.stringify(body)],
      );
      ids.push(row?.commandId ?? '');
    }
    await this.notify(sql);
    return ids;
  }

  async notify(sql: Sql): Promise<void> {
    await sql.query(`SELECT pg_notify('{s}_${COMMANDS_CHANNEL}', '')`);
  }

  async answerOf(commandId: string): Promise<Answer | undefined> {
    const [row] = await this.#database.query<{ readonly answer: Answer | null }>(
      'SELECT answer FROM {s}.orders WHERE order_id = $1',
      [commandId],
    );
    return row === undefined ? DONE : (row.answer ?? undefined);
  }

  /** Open commands for jobs that no agent has had yet. */
  async ofNew(): Promise<(OpenCommand & { readonly madeAt: number })[]> {
    const commands = await this.#database.query<OpenCommand & { readonly madeAt: number }>(
      `SELECT ${COLUMNS}, extract(epoch FROM made_at)::float * 1000 AS "madeAt"
       FROM {s}.orders JOIN {s}.jobs USING (job_id) WHERE state = 'ordered' AND answer IS NULL ORDER BY order_id`,
    );
    return this.#understood(this.#database.border.jobs(commands));
  }

  /**
   * Open commands for the jobs of an owner, oldest first, without the `known` ones. One that this version does not
   * understand gets an error as its answer, so that it blocks no other.
   */
  async openOf(owner: string, known: readonly string[], max: number): Promise<OpenCommand[]> {
    const commands = await this.#database.query<OpenCommand>(
      `SELECT ${COLUMNS}
       FROM {s}.orders JOIN {s}.jobs USING (job_id) WHERE owner = $1 AND answer IS NULL AND order_id <> ALL($2::bigint[])
       ORDER BY order_id LIMIT ${max}`,
      [owner, known],
    );
    const sound = this.#understood(commands);
    const understood = new Set(sound.map(({ commandId }) => commandId));
    const refused = commands.flatMap(({ commandId }) => (understood.has(commandId) ? [] : [commandId]));
    await this.settle(this.#database, refused, REFUSED);
    return sound;
  }

  /** Within a fenced transaction. A null answer follows later. */
  async settle(sql: Sql, commandIds: readonly string[], answer: Answer | null): Promise<void> {
    if (commandIds.length === 0) return;
    await sql.query(`UPDATE {s}.orders SET is_applied = true, answer = $2 WHERE order_id = ANY($1::bigint[])`, [
      commandIds,
      answer === null ? null : JSON.stringify(answer),
    ]);
  }

  #understood<Found extends OpenCommand>(commands: readonly Found[]): Found[] {
    return commands.flatMap((command) => {
      const parsed = this.#database.border.command(command);
      return parsed === undefined ? [] : [{ ...command, ...parsed }];
    });
  }

  /** Those of the jobs without open commands, within a fenced transaction, which locks their rows. */
  async withoutOpen(sql: Sql, jobs: readonly LeasedJob[]): Promise<LeasedJob[]> {
    const select = 'SELECT job_id AS "jobId" FROM {s}.orders WHERE job_id = ANY($1) AND answer IS NULL';
    const open = new Set(idsOf(await sql.query<{ readonly jobId: JobId }>(select, [idsOf(jobs)])));
    return jobs.filter(({ jobId }) => !open.has(jobId));
  }
}

export interface Settled {
  readonly jobId: JobId;
  readonly commandId: string;
  readonly answer: Answer | null;
}

interface Asked {
  readonly jobId: JobId;
  readonly requestId: number;
}

/** Executes commands for the jobs that this agent owns: puts them into its store, and collects the answers there. */
export class Execution {
  readonly #store: Store;
  readonly #now: () => number;
  readonly #asked = new Map<string, Asked>();

  constructor(store: Store, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  get asked(): string[] {
    return [...this.#asked.keys()];
  }

  /** Executes new commands in the store; returns what is to be written about them. */
  apply(commands: readonly OpenCommand[]): Settled[] {
    if (commands.length === 0) return [];
    return this.#store.transaction(() => commands.map((command) => this.#apply(command)));
  }

  answered(): Settled[] {
    return [...this.#asked].flatMap(([commandId, { jobId, requestId }]) => {
      const request = this.#store.requests.get(requestId);
      if (request !== undefined && request.answer === null) return [];
      return [{ jobId, commandId, answer: JSON.parse(request?.answer ?? '{}') as Answer }];
    });
  }

  forget(settled: readonly Settled[]): void {
    for (const { commandId } of settled) this.#asked.delete(commandId);
  }

  isAsked(jobId: JobId): boolean {
    return [...this.#asked.values()].some((asked) => asked.jobId === jobId);
  }

  forgetJob(jobId: JobId): void {
    for (const [commandId, asked] of this.#asked) if (asked.jobId === jobId) this.#asked.delete(commandId);
  }

  #apply(command: OpenCommand): Settled {
    const { jobId, commandId, kind, isApplied } = command;
    if (kind !== 'watch' && this.#store.jobs.get(jobId) === undefined) {
      return { jobId, commandId, answer: { error: `job ${jobId} is not watched` } satisfies PassAnswer };
    }
    if (!isApplied) this.#change(command);
    if (kind !== 'sync' && kind !== 'unwatch') return { jobId, commandId, answer: DONE };
    this.#asked.set(commandId, { jobId, requestId: this.#store.requests.add(jobId, kind, this.#now()) });
    return { jobId, commandId, answer: null };
  }

  #change({ jobId, kind, body }: OpenCommand): void {
    const { jobs } = this.#store;
    const job = jobs.get(jobId);
    if (kind === 'watch' && body !== null) jobs.watch(body, this.#now());
    else if (kind === 'unwatch') jobs.unwatch(jobId, 'ending');
    else if (kind === 'end') jobs.unwatch(jobId, 'ended');
    else if (kind === 'resume') jobs.resume(jobId);
    else if (kind === 'drop' && job?.source === 'config' && job.state === 'watched') jobs.setState(jobId, 'ending');
  }
}
