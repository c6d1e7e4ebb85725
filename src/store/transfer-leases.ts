/** The transfer methods that the service lent, recorded before they are used; never their private keys. */
import type { JobId } from '../job.ts';
import type { SqliteDatabase } from './database.ts';
import type { LeaseRow } from './rows.ts';

const COLUMNS = `lease_id AS leaseId, job_id AS jobId, state, protocol, host, base_path AS basePath, username,
  public_key AS publicKey, way, asked_at AS askedAt, opened_at AS openedAt, ended_at AS endedAt, reason`;

/** What is recorded of the answer of GetFileTransferMethod. */
export type OpenedLease = Pick<LeaseRow, 'leaseId' | 'protocol' | 'host' | 'basePath' | 'username' | 'publicKey'>;

export class TransferLeases {
  readonly #forget;
  readonly #ask;
  readonly #open;
  readonly #end;
  readonly #lose;
  readonly #loseAsked;
  readonly #setWay;
  readonly #opened;
  readonly #last;

  constructor(db: SqliteDatabase) {
    this.#forget = db.prepare("DELETE FROM transfer_leases WHERE state IN ('ended', 'unknown') AND job_id = ?");
    this.#ask = db.prepare("INSERT INTO transfer_leases (job_id, state, asked_at) VALUES (?, 'asked', ?)");
    this.#open = db.prepare(`
      UPDATE transfer_leases SET state = 'open', protocol = @protocol, host = @host, base_path = @basePath,
        username = @username, public_key = @publicKey, opened_at = @now WHERE lease_id = @leaseId`);
    this.#end = db.prepare(
      "UPDATE transfer_leases SET state = 'ended', ended_at = ?, reason = ? WHERE lease_id = ? AND state <> 'ended'",
    );
    this.#lose = db.prepare("UPDATE transfer_leases SET state = 'unknown', reason = ? WHERE lease_id = ?");
    this.#loseAsked = db.prepare<[string], LeaseRow>(`
      UPDATE transfer_leases SET state = 'unknown', reason = ? WHERE state = 'asked' RETURNING ${COLUMNS}`);
    this.#setWay = db.prepare('UPDATE transfer_leases SET way = ? WHERE lease_id = ?');
    this.#opened = db.prepare<[], LeaseRow>(
      `SELECT ${COLUMNS} FROM transfer_leases WHERE state = 'open' ORDER BY lease_id`,
    );
    this.#last = db.prepare<[string], LeaseRow>(
      `SELECT ${COLUMNS} FROM transfer_leases WHERE job_id = ? ORDER BY lease_id DESC LIMIT 1`,
    );
  }

  /** Notes that a method is about to be asked for; the id of the lease. Those before that are over are forgotten. */
  ask(jobId: JobId, now: number): number {
    this.#forget.run(jobId);
    return Number(this.#ask.run(jobId, now).lastInsertRowid);
  }

  open(lease: OpenedLease, now: number): void {
    this.#open.run({ ...lease, now });
  }

  end(leaseId: number, now: number, reason: string | null): void {
    this.#end.run(now, reason, leaseId);
  }

  /** The answer did not arrive: there may be a key, but nobody can name it. */
  lose(leaseId: number, reason: string): void {
    this.#lose.run(reason, leaseId);
  }

  /** What was asked for by a process that is gone: nobody knows whether there was an answer. */
  loseAsked(reason: string): LeaseRow[] {
    return this.#loseAsked.all(reason);
  }

  setWay(leaseId: number, way: string): void {
    this.#setWay.run(way, leaseId);
  }

  /** All that are open, of all jobs, the oldest first. */
  allOpen(): LeaseRow[] {
    return this.#opened.all();
  }

  lastOf(jobId: JobId): LeaseRow | undefined {
    return this.#last.get(jobId);
  }
}
