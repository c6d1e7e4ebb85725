/** The watched jobs. */
import type { JobId } from '../job.ts';
import type { SqliteDatabase } from './database.ts';
import type { JobRow, JobState, Trouble, WatchOrder } from './rows.ts';
import { troubleOf, troubleText } from './trouble-text.ts';

interface RawJob {
  job_id: JobId;
  source: JobRow['source'];
  state: JobState;
  results: number;
  settle_after_ms: number | null;
  watched_at: number;
  polled_at: number | null;
  grown_at: number | null;
  refused: number;
  failures: number;
  error: string | null;
  revision: number;
}

export interface ChangedJob extends JobRow {
  readonly revision: number;
}

/** How a visit of a job ended. */
export interface VisitEnd {
  readonly polledAt: number;
  /** Set if one of its live files grew. */
  readonly grownAt: number | null;
  readonly refused: number;
  readonly failures: number;
  readonly error: Trouble | null;
}

/** Goes up with every order and every change of a state; what is only noted of a visit does not count. */
const NEXT_REVISION = '(SELECT coalesce(max(revision), 0) + 1 FROM jobs)';

export class Jobs {
  readonly #select;
  readonly #selectAll;
  readonly #selectChanged;
  readonly #end;
  readonly #setState;
  readonly #unwatch;
  readonly #order;
  readonly #addFile;

  constructor(db: SqliteDatabase) {
    this.#select = db.prepare<[string], RawJob>('SELECT * FROM jobs WHERE job_id = ?');
    this.#selectAll = db.prepare<[], RawJob>('SELECT * FROM jobs');
    this.#selectChanged = db.prepare<[number], RawJob>('SELECT * FROM jobs WHERE revision > ?');
    this.#end = db.prepare(`
      UPDATE jobs SET polled_at = @polledAt, grown_at = coalesce(@grownAt, grown_at), refused = refused + @refused,
        failures = @failures, error = @error WHERE job_id = @jobId`);
    this.#setState = db.prepare(
      `UPDATE jobs SET state = @state, revision = ${NEXT_REVISION} WHERE job_id = @jobId AND state <> @state`,
    );
    this.#unwatch = db.prepare(
      `UPDATE jobs SET state = @state, source = 'command', revision = ${NEXT_REVISION} WHERE job_id = @jobId`,
    );
    this.#order = db.prepare(`
      INSERT INTO jobs (job_id, source, state, results, settle_after_ms, watched_at, revision)
      VALUES (@jobId, @source, 'watched', @results, @settleAfterMs, @now, ${NEXT_REVISION})
      ON CONFLICT (job_id) DO UPDATE SET source = @source, state = 'watched', results = @results,
        settle_after_ms = @settleAfterMs, failures = 0, error = NULL, revision = excluded.revision,
        watched_at = CASE WHEN state IN ('watched', 'ending') THEN watched_at ELSE @now END`);
    this.#addFile = db.prepare('INSERT OR IGNORE INTO live_files (job_id, task_id, file) VALUES (?, ?, ?)');
  }

  get(jobId: JobId): JobRow | undefined {
    const raw = this.#select.get(jobId);
    return raw === undefined ? undefined : rowOf(raw);
  }

  all(): JobRow[] {
    return this.#selectAll.all().map(rowOf);
  }

  /** Those that were ordered, or changed their state, since `revision`; all of them since -1. */
  changedSince(revision: number): ChangedJob[] {
    return this.#selectChanged.all(revision).map((raw) => ({ ...rowOf(raw), revision: raw.revision }));
  }

  /**
   * Registers a job, or brings a known one to the new order: files are added, none is taken away. Called within a
   * transaction.
   */
  watch(order: WatchOrder, now: number): void {
    const { jobId, source, settleAfterMs } = order;
    this.#order.run({ jobId, source, results: order.results ? 1 : 0, settleAfterMs, now });
    for (const task of order.tasks) for (const name of order.files) this.#addFile.run(jobId, task, name);
  }

  setState(jobId: JobId, state: JobState): void {
    this.#setState.run({ jobId, state });
  }

  /** A person ended it: that counts, also against the configuration at the next start. */
  unwatch(jobId: JobId, state: 'ending' | 'ended'): void {
    this.#unwatch.run({ jobId, state });
  }

  endVisit(jobId: JobId, end: VisitEnd): void {
    this.#end.run({ jobId, ...end, error: troubleText(end.error) });
  }
}

function rowOf(raw: RawJob): JobRow {
  return {
    jobId: raw.job_id,
    source: raw.source,
    state: raw.state,
    results: raw.results === 1,
    settleAfterMs: raw.settle_after_ms,
    watchedAt: raw.watched_at,
    polledAt: raw.polled_at,
    grownAt: raw.grown_at,
    refused: raw.refused,
    failures: raw.failures,
    error: troubleOf(raw.error),
  };
}
