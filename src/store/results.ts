/** The ledger of the result files: what was listed, what was fetched, and when each is due again. */
import type { JobId } from '../job.ts';
import type { ResultCounts, ResultRow, ResultSyncRow } from './rows.ts';
import { type Sql, Table } from './sql.ts';

/** The cluster decides how many rows there are, so they are read in pages. */
const PAGE_ROWS = 500;

const COUNTS = `
  total(names) AS listed, total(names) FILTER (WHERE state IN ('synced', 'in-flux', 'linked')) AS synced,
  total(names) FILTER (WHERE state = 'linked') AS linked,
  total(names) FILTER (WHERE state = 'in-flux') AS inFlux,
  total(names) FILTER (WHERE state = 'listed') AS queued,
  total(names) FILTER (WHERE state IN ('failed', 'refused')) AS failed,
  total(names) FILTER (WHERE state = 'refused') AS refused,
  total(names) FILTER (WHERE state = 'left-out') AS leftOut, total(bytes) AS bytes
  FROM (SELECT job_id, state, kept + without_row AS names, bytes FROM result_counts)`;

/** Limits for the reasons of one job. */
const MAX_COUNTED_ROWS = 20_000;
const MAX_REASONS = 20;

interface ResultReason {
  readonly state: ResultRow['state'];
  readonly reason: string;
  readonly files: number;
  readonly name: string;
}

export type NamesWithoutRow = Readonly<Record<'refused' | 'left-out', number>>;

export class ResultFiles {
  readonly #sql: Sql;
  readonly #table: Table<ResultRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#table = new Table(sql, 'result_files', { stampProven: 'flag' });
  }

  /** The rows of a job from a name on, in the order of their names. They may be changed meanwhile. */
  *ofJob(jobId: JobId, first = ''): Generator<ResultRow, void> {
    for (let from: string | undefined = first; from !== undefined; ) {
      const rows = this.#table.all('WHERE job_id = ? AND name >= ? ORDER BY name LIMIT ?', jobId, from, PAGE_ROWS);
      yield* rows;
      const last = rows.at(-1);
      // The smallest name after it.
      from = last === undefined ? undefined : `${last.name}\0`;
    }
  }

  /** Names that are live files, each with the `keyText` of the live file. */
  links(jobId: JobId): { readonly name: string; readonly live: string }[] {
    const select = 'SELECT name, live FROM result_files INDEXED BY result_files_linked';
    return this.#sql.all(`${select} WHERE job_id = ? AND live IS NOT NULL`, jobId);
  }

  notSynced(jobId: JobId, max: number): ResultRow[] {
    const rest = 'INDEXED BY result_files_not_synced WHERE job_id = ? AND reason IS NOT NULL LIMIT ?';
    return this.#table.all(rest, jobId, max);
  }

  /** Why names are not here: each reason with its state, the number of its names, and the first of them; the most frequent first. */
  reasons(jobId: JobId): ResultReason[] {
    const rows = 'SELECT name, state, reason FROM result_files INDEXED BY result_files_not_synced';
    const select = `SELECT state, reason, count(*) AS files, min(name) AS name
      FROM (${rows} WHERE job_id = ? AND reason IS NOT NULL LIMIT ${MAX_COUNTED_ROWS})
      GROUP BY state, reason ORDER BY files DESC, reason LIMIT ${MAX_REASONS}`;
    return this.#sql.all(select, jobId);
  }

  saveAll(rows: readonly ResultRow[]): void {
    this.#sql.transaction(() => {
      for (const row of rows) this.#table.save(row);
    });
  }

  /** No pass finishes these any more. */
  endUnfinished(jobId: JobId, reason: string): void {
    const end =
      "UPDATE result_files SET state = 'failed', reason = ? WHERE job_id = ? AND state IN ('listed', 'in-flux')";
    this.#sql.run(end, reason, jobId);
  }

  forgetAll(rows: readonly Pick<ResultRow, 'jobId' | 'name'>[]): void {
    const forget = 'DELETE FROM result_files WHERE job_id = ? AND name = ?';
    this.#sql.transaction(() => {
      for (const { jobId, name } of rows) this.#sql.run(forget, jobId, name);
    });
  }

  setWithoutRow(jobId: JobId, counts: NamesWithoutRow): void {
    const get = 'SELECT without_row FROM result_counts WHERE job_id = ? AND state = ?';
    const set = `
      INSERT INTO result_counts (job_id, state, kept, without_row, bytes) VALUES (@jobId, @state, 0, @count, 0)
      ON CONFLICT DO UPDATE SET without_row = @count`;
    for (const [state, count] of Object.entries(counts)) {
      // Usually nothing changed, and nothing is written.
      const before = this.#sql.get<{ without_row: number }>(get, jobId, state)?.without_row ?? 0;
      if (count !== before) this.#sql.run(set, { jobId, state, count });
    }
  }

  counts(jobId: JobId): ResultCounts {
    return this.#sql.sums(`SELECT ${COUNTS} WHERE job_id = ?`, jobId);
  }
  countsByJob(): Map<JobId, ResultCounts> {
    const rows = this.#sql.all<ResultCounts & Pick<ResultRow, 'jobId'>>(
      `SELECT job_id AS jobId, ${COUNTS} GROUP BY job_id`,
    );
    return new Map(rows.map(({ jobId, ...counts }) => [jobId, counts]));
  }

  get(jobId: JobId, name: string): ResultRow | undefined {
    return this.#table.get('WHERE job_id = ? AND name = ?', jobId, name);
  }

  /** The names as a tree: in their order, after `after`, what follows `under` up to the next slash. */
  level(jobId: JobId, query: LevelQuery): LevelEntry[] {
    const { under } = query;
    const names = [...this.#entries(jobId, query)];
    const [first] = names;
    const last = names.at(-1);
    if (first === undefined || last === undefined) return [];
    const select = `
      SELECT CASE WHEN slash = 0 THEN name ELSE @under || substr(rest, 1, slash) END AS name, slash > 0 AS isDirectory,
        state, count(*) AS files, total(bytes) AS bytes
      FROM (SELECT name, state, bytes, rest, instr(rest, '/') AS slash FROM (
        SELECT name, state, bytes, substr(name, length(@under) + 1) AS rest FROM result_files
          WHERE job_id = @jobId AND name >= @first AND name < @end))
      GROUP BY 1, 2, 3 ORDER BY 1`;
    return this.#sql.all(select, { jobId, under, first, end: behind(last, under) });
  }

  /** The names of one level, one query each, without what is below directories. */
  *#entries(jobId: JobId, { under, after, max }: LevelQuery): Generator<string, void> {
    const next = 'SELECT name FROM result_files WHERE job_id = ? AND name >= ? ORDER BY name LIMIT 1';
    let from = after === '' ? under : behind(after, under);
    for (let found = 0; found < max; found++) {
      const name = this.#sql.get<Pick<ResultRow, 'name'>>(next, jobId, from)?.name;
      if (name === undefined || !name.startsWith(under)) return;
      const slash = name.indexOf('/', under.length);
      const entry = slash < 0 ? name : name.slice(0, slash + 1);
      // A name without a first part: it is skipped.
      if (entry === '') found--;
      else yield entry;
      from = behind(entry, under);
    }
  }
}

/** The smallest text after an entry and, for a directory, after all names in it: '0' follows the slash. */
function behind(entry: string, under: string): string {
  return entry.length > under.length && entry.endsWith('/') ? `${entry.slice(0, -1)}0` : `${entry}\0`;
}

interface LevelQuery {
  readonly under: string;
  readonly after: string;
  readonly max: number;
}

/** A directory with the number and bytes of its names in one state, or a single name. */
export interface LevelEntry {
  readonly name: string;
  readonly isDirectory: 0 | 1;
  readonly state: ResultRow['state'];
  readonly files: number;
  readonly bytes: number;
}

export function bytesPerSecond({ startedAt, updatedAt, bytes }: ResultSyncRow): number {
  return updatedAt > startedAt ? (bytes * 1000) / (updatedAt - startedAt) : 0;
}

export function shownSync(row: ResultSyncRow | undefined) {
  if (row === undefined) return null;
  const { jobId: _, arriving: __, ...sync } = row;
  return { ...sync, bytesPerSecond: Math.round(bytesPerSecond(row)) };
}
