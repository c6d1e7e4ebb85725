/** How the last sync of each job's results went: for `status`, and for commands that wait for the running agent. */
import type { JobId } from '../job.ts';
import type { SqliteDatabase } from './database.ts';
import type { ResultSyncRow } from './rows.ts';

export class ResultSyncs {
  readonly #get;
  readonly #save;

  constructor(db: SqliteDatabase) {
    this.#get = db.prepare<[string], ResultSyncRow>(`
      SELECT job_id AS jobId, started_at AS startedAt, updated_at AS updatedAt, ended_at AS endedAt, wanted, done, bytes,
        way, fallback FROM result_passes WHERE job_id = ?`);
    this.#save = db.prepare(`
      INSERT OR REPLACE INTO result_passes
        (job_id, started_at, updated_at, ended_at, wanted, done, bytes, way, fallback)
      VALUES (@jobId, @startedAt, @updatedAt, @endedAt, @wanted, @done, @bytes, @way, @fallback)`);
  }

  get(jobId: JobId): ResultSyncRow | undefined {
    return this.#get.get(jobId);
  }

  save(row: ResultSyncRow): void {
    this.#save.run({ ...row });
  }
}
