/** Commands for jobs: only the owner executes them. A command for a job without an owner brings it one. */
import type { PassAnswer } from '../../agent/pass/complete-pass.ts';
import type { JobId } from '../../job.ts';
import { jsonOf } from '../../store/sql.ts';
import type { Store } from '../../store/store.ts';
import { idsOf, type LeasedJob } from '../agents/agents.ts';
import type { Database } from '../database/database.ts';
import type { Queries } from '../database/tables.ts';
import type { Command, OpenCommand } from '../rows/border.ts';

/** The answer of a command for which no client waits. */
export const DONE = {};
const REFUSED = { error: 'the agent does not understand this command', hint: 'update the agents of the fleet' };
export type CommandAnswer = PassAnswer | typeof DONE;

export const COMMANDS_CHANNEL = 'orders';

/** Limits how long agents wait that acquire these jobs or execute their commands. */
export const COMMANDS_AT_ONCE = 500;

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

  async giveWithin(sql: Queries, commands: readonly Command[]): Promise<string[]> {
    if (commands.length === 0) return [];
    // Locks the rows, in an order: an owner that finds no more work checks again after this transaction.
    const rows = await sql.query<{ readonly commandId: string }>(
      `WITH given AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS given (job_id, kind, body, source)),
         locked AS (INSERT INTO {s}.jobs (job_id, source, waiting_since)
           SELECT DISTINCT ON (job_id) job_id, source, now() FROM given ORDER BY job_id ON CONFLICT (job_id) DO UPDATE
           SET waiting_since = CASE WHEN jobs.owner IS NULL THEN coalesce(jobs.waiting_since, now()) END)
       INSERT INTO {s}.orders (job_id, kind, body) SELECT job_id, kind, body::json FROM given RETURNING order_id::text AS "commandId"`,
      [
        ...[idsOf(commands), commands.map(({ kind }) => kind)],
        ...[commands.map(({ body }) => jsonOf(body ?? null)), commands.map(({ body }) => body?.source ?? 'command')],
      ],
    );
    await this.notify(sql);
    return rows.map(({ commandId }) => commandId);
  }

  async notify(sql: Queries): Promise<void> {
    await sql.query(`SELECT pg_notify('{s}_${COMMANDS_CHANNEL}', '')`);
  }

  async answerOf(commandId: string): Promise<CommandAnswer | undefined> {
    const [row] = await this.#database.query<{ readonly answer: CommandAnswer | null }>(
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

  /** Open commands for jobs of an owner, oldest first, without `known`. An unknown kind is answered with an error. */
  async openOf(owner: string, known: readonly string[], max: number): Promise<OpenCommand[]> {
    const commands = await this.#database.query<OpenCommand>(
      `SELECT ${COLUMNS}
       FROM {s}.orders JOIN {s}.jobs USING (job_id) WHERE owner = $1 AND answer IS NULL AND order_id <> ALL($2::bigint[])
       ORDER BY order_id LIMIT ${max}`,
      [owner, known],
    );
    const sound = this.#understood(commands);
    const understood = new Set(sound.map(({ commandId }) => commandId));
    const refused = commands.filter(({ commandId }) => !understood.has(commandId));
    await this.settle(
      this.#database,
      refused.map(({ commandId }) => ({ commandId, answer: REFUSED })),
    );
    return sound;
  }

  /** Within a fenced transaction. A null answer follows later. */
  async settle(sql: Queries, settled: readonly Pick<Settled, 'commandId' | 'answer'>[]): Promise<void> {
    if (settled.length === 0) return;
    await sql.query(
      `UPDATE {s}.orders SET is_applied = true, answer = settled.answer::json
       FROM unnest($1::bigint[], $2::text[]) AS settled (order_id, answer) WHERE orders.order_id = settled.order_id`,
      [settled.map(({ commandId }) => commandId), settled.map(({ answer }) => jsonOf(answer))],
    );
  }

  #understood<Found extends OpenCommand>(commands: readonly Found[]): Found[] {
    return commands.flatMap((command) => {
      const parsed = this.#database.border.command(command);
      return parsed === undefined ? [] : [{ ...command, ...parsed }];
    });
  }

  /** Those of the jobs without open commands, within a fenced transaction, which locks their rows. */
  async withoutOpen(sql: Queries, jobs: readonly LeasedJob[]): Promise<LeasedJob[]> {
    const select = 'SELECT job_id AS "jobId" FROM {s}.orders WHERE job_id = ANY($1) AND answer IS NULL';
    const open = new Set(idsOf(await sql.query<{ readonly jobId: JobId }>(select, [idsOf(jobs)])));
    return jobs.filter(({ jobId }) => !open.has(jobId));
  }
}

export interface Settled {
  readonly jobId: JobId;
  readonly commandId: string;
  readonly answer: CommandAnswer | null;
}

/** By the id of the command. */
type Asked = Map<string, { readonly jobId: JobId; readonly requestId: number }>;

/** Executes commands for the jobs that this agent owns: puts them into its store, and collects the answers there. */
export class Execution {
  readonly #store: Store;
  readonly #now: () => number;
  /** Commands with a request in the store, whose answer is still to come. */
  readonly #asked: Asked = new Map();

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
    // Not before the commit: another request would get the number of one that is rolled back.
    const asked: Asked = new Map();
    const settled = this.#store.transaction(() => commands.map((command) => this.#apply(command, asked)));
    for (const [commandId, request] of asked) this.#asked.set(commandId, request);
    return settled;
  }

  answered(): Settled[] {
    return [...this.#asked].flatMap(([commandId, { jobId, requestId }]) => {
      const request = this.#store.requests.get(requestId);
      // It is gone without an answer that was read: the command is executed again.
      if (request === undefined) this.#asked.delete(commandId);
      if (request === undefined || request.answer === null) return [];
      return [{ jobId, commandId, answer: JSON.parse(request.answer) as CommandAnswer }];
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

  #apply(command: OpenCommand, asked: Asked): Settled {
    const { jobId, commandId, kind, isApplied } = command;
    if (kind !== 'watch' && this.#store.jobs.get(jobId) === undefined) {
      return { jobId, commandId, answer: { error: `job ${jobId} is not watched` } satisfies PassAnswer };
    }
    if (!isApplied) this.#change(command);
    if (kind !== 'sync' && kind !== 'unwatch') return { jobId, commandId, answer: DONE };
    asked.set(commandId, { jobId, requestId: this.#store.requests.add(jobId, kind, this.#now()) });
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
