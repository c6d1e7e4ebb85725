/**
 * When the bytes of live mirrors arrived, in bounded size: rows are at least five seconds apart, and older ones are
 * thinned. Rows stay in this store: the next owner of a job has those of its own appends.
 */
import type { JobId, LiveFileKey } from '../job.ts';
import type { LiveFileRow } from './rows.ts';
import type { Sql } from './sql.ts';

/** The bytes [start, end) arrived not before `from` and not after `to`. */
export type Arrival = readonly [start: number, end: number, from: number, to: number];

/** What a poll appended to a mirror. */
export interface Append {
  /** The row before the poll. */
  readonly before: LiveFileRow;
  /** The row after it. */
  readonly after: LiveFileRow;
  /** Bytes that this poll appended, the last ones before the committed offset. */
  readonly bytes: number;
  readonly begunAt: number;
}

interface Row {
  readonly position: number;
  /** Null: unknown, as for bytes that a kill left. */
  readonly since: number | null;
  /** The last growth before `position`. */
  readonly lastAt: number | null;
}

const UNKNOWN: Row = { position: 0, since: null, lastAt: null };
const SPACING_MS = 5_000;
/** Of one generation; more are thinned. */
export const MAX_ARRIVALS = 512;
const KEPT = 384;
/** The share of its age by which the time of a byte is uncertain after the first thinning. */
const SHARE = 1 / 64;
/** Earlier generations are forgotten. */
const MAX_GENERATIONS = 10;

const OF_FILE = 'job_id = @jobId AND task_id = @taskId AND file = @file';
const OF_GENERATION = `${OF_FILE} AND generation = @generation`;
const SELECT = 'SELECT position, since, last_at AS lastAt FROM arrivals';

export class Arrivals {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Called within the transaction that commits the offset. */
  add({ before, after, bytes, begunAt }: Append): void {
    const isSame = before.generation === after.generation;
    // What else the poll appended to the generation before is unknown.
    if (!isSame && before.rotation === null)
      this.#insert(keyOf(before, before.generation), { ...UNKNOWN, position: before.position, lastAt: before.grownAt });
    const committed = isSame ? before.position : 0;
    const start = Math.max(0, after.position - bytes);
    if (bytes === 0 && start <= committed) return;
    const key = keyOf(after, after.generation);
    // Bytes that were cut arrive again.
    this.#sql.run(`DELETE FROM arrivals WHERE ${OF_GENERATION} AND position > @start`, {
      ...key,
      start: Math.min(committed, start),
    });
    if (start > committed) this.#insert(key, { ...UNKNOWN, position: committed, lastAt: before.grownAt });
    const last = this.#sql.get<Row>(`${SELECT} WHERE ${OF_GENERATION} ORDER BY position DESC LIMIT 1`, key);
    const isNear = last?.since != null && begunAt >= last.since && begunAt - last.since < SPACING_MS;
    if (bytes === 0 || isNear) return;
    this.#insert(key, {
      position: start,
      since: begunAt,
      lastAt: isSame && start <= committed ? before.grownAt : null,
    });
    if (last === undefined)
      this.#sql.run(`DELETE FROM arrivals WHERE ${OF_FILE} AND generation <= @generation`, {
        ...key,
        generation: after.generation - MAX_GENERATIONS,
      });
    this.#thin(key, begunAt);
  }

  /** In order; bytes whose time is unknown are in none of them. `now`: the present row of the file. */
  ofGeneration(now: LiveFileRow, generation: number): Arrival[] {
    const rows = this.#rows(keyOf(now, generation));
    const end = {
      ...UNKNOWN,
      ...(generation === now.generation ? { position: now.position, lastAt: now.grownAt } : {}),
    };
    return rows.flatMap(({ position: start, since }, index) => {
      const { position, lastAt } = rows[index + 1] ?? end;
      // A clock that was set back makes a time unknown.
      const isKnown = since !== null && lastAt !== null && since <= lastAt && start < position;
      return isKnown ? [[start, position, since, lastAt] as const] : [];
    });
  }

  #rows(key: Key): Row[] {
    return this.#sql.all<Row>(`${SELECT} WHERE ${OF_GENERATION} ORDER BY position`, key);
  }

  #insert(key: Key, row: Row): void {
    this.#sql.run(
      `INSERT INTO arrivals (job_id, task_id, file, generation, position, since, last_at)
        VALUES (@jobId, @taskId, @file, @generation, @position, @since, @lastAt)
        ON CONFLICT DO UPDATE SET since = excluded.since, last_at = excluded.last_at`,
      { ...key, ...row },
    );
  }

  /** Removes rows that are close together, measured by their age. */
  #thin(key: Key, now: number): void {
    const count = `SELECT count(*) AS rows FROM arrivals WHERE ${OF_GENERATION}`;
    if (this.#sql.sums<{ readonly rows: number }>(count, key).rows <= MAX_ARRIVALS) return;
    const rows = this.#rows(key);
    let kept = rows;
    for (let share = SHARE; share < 1 && kept.length > KEPT; share *= 2) kept = thinned(rows, now, share);
    kept = kept.slice(-KEPT);
    const positions = new Set(kept.map(({ position }) => position));
    for (const { position } of rows)
      if (!positions.has(position))
        this.#sql.run(`DELETE FROM arrivals WHERE ${OF_GENERATION} AND position = @position`, {
          ...key,
          position,
        });
  }
}

type Key = LiveFileKey & { readonly jobId: JobId; readonly generation: number };

const keyOf = ({ jobId, taskId, file }: LiveFileRow, generation: number): Key => ({ jobId, taskId, file, generation });

/** Without the rows that are closer to the one before than this share of their age; unknown bytes stay apart. */
function thinned(rows: readonly Row[], now: number, share: number): Row[] {
  const kept: Row[] = [];
  for (const row of rows) {
    const before = kept.at(-1)?.since ?? null;
    const isNear = before !== null && row.since !== null && row.since - before < share * (now - row.since);
    if (!isNear) kept.push(row);
  }
  return kept;
}
