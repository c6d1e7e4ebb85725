/** What commands ask of the running agent. The row is the truth; touching the wake file only makes it quicker. */
import type { JobId } from '../job.ts';
import type { SqliteDatabase } from './database.ts';
import type { RequestRow } from './rows.ts';

const COLUMNS = 'request_id AS requestId, job_id AS jobId, kind, made_at AS madeAt, answer';

export class Requests {
  readonly #add;
  readonly #open;
  readonly #get;
  readonly #answer;
  readonly #forget;

  constructor(db: SqliteDatabase) {
    this.#add = db.prepare('INSERT INTO requests (job_id, kind, made_at) VALUES (?, ?, ?)');
    this.#open = db.prepare<[], RequestRow>(`SELECT ${COLUMNS} FROM requests WHERE answer IS NULL ORDER BY request_id`);
    this.#get = db.prepare<[number], RequestRow>(`SELECT ${COLUMNS} FROM requests WHERE request_id = ?`);
    this.#answer = db.prepare('UPDATE requests SET answer = ? WHERE request_id = ?');
    this.#forget = db.prepare('DELETE FROM requests WHERE answer IS NOT NULL AND made_at < ?');
  }

  /** The id of the new request. */
  add(jobId: JobId, kind: RequestRow['kind'], now: number): number {
    return Number(this.#add.run(jobId, kind, now).lastInsertRowid);
  }

  /** The ones without an answer, oldest first. */
  open(): RequestRow[] {
    return this.#open.all();
  }

  get(requestId: number): RequestRow | undefined {
    return this.#get.get(requestId);
  }

  answer(requestId: number, answer: string): void {
    this.#answer.run(answer, requestId);
  }

  /** Removes answered ones made before `before`. */
  forgetAnswered(before: number): void {
    this.#forget.run(before);
  }
}
