/** What was detected of a service, and the grants that it made. */
import type { JobId } from '../job.ts';
import type { LeaseRow } from './rows.ts';
import { type Sql, Table } from './sql.ts';

interface CapabilityRow {
  readonly service: string;
  readonly name: string;
  readonly value: string;
}

/** Detected properties of a service: text encoding, batch limit and others. */
export class Capabilities {
  readonly #service: string;
  readonly #table: Table<CapabilityRow>;

  constructor(sql: Sql, service: string) {
    this.#service = service;
    this.#table = new Table(sql, 'capabilities', {});
  }

  get service(): string {
    return this.#service;
  }

  /** Addresses of other services, with which this state was used. */
  get others(): string[] {
    return [...new Set(this.#table.all('WHERE service <> ?', this.#service).map(({ service }) => service))];
  }

  get(name: string): string | undefined {
    return this.#table.get('WHERE service = ? AND name = ?', this.#service, name)?.value;
  }

  all(): Pick<CapabilityRow, 'name' | 'value'>[] {
    return this.#table
      .all('WHERE service = ? ORDER BY name', this.#service)
      .map(({ name, value }) => ({ name, value }));
  }

  /** Writes nothing if it is known. */
  set(name: string, value: string): void {
    if (this.get(name) !== value) this.#table.save({ service: this.#service, name, value });
  }
}

type OpenedLease = Pick<LeaseRow, 'leaseId' | 'protocol' | 'host' | 'basePath' | 'username' | 'publicKey'>;

/** The rows of ended keys stay: some services count the keys of a job over its whole life. */
const IS_KEY = "(state = 'unknown' OR opened_at IS NOT NULL)";
const MAX_ROWS = 20;

/** The transfer grants, recorded before they are used, without their private keys. */
export class TransferLeases {
  readonly #sql: Sql;
  readonly #table: Table<LeaseRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#table = new Table(sql, 'transfer_leases', {});
  }

  /** Records that a method is about to be requested; returns the id. Removes rows without a key. */
  ask(jobId: JobId, now: number): number {
    const forget = `DELETE FROM transfer_leases WHERE job_id = @jobId AND state IN ('ended', 'unknown') AND lease_id NOT IN
      (SELECT lease_id FROM transfer_leases WHERE job_id = @jobId AND ${IS_KEY} ORDER BY lease_id DESC LIMIT ${MAX_ROWS})`;
    this.#sql.run(forget, { jobId });
    // The time makes the row unique among those of the job, in any store.
    const insert = `INSERT INTO transfer_leases (job_id, state, asked_at) VALUES (@jobId, 'asked',
      max(@now, (SELECT coalesce(max(asked_at) + 1, 0) FROM transfer_leases WHERE job_id = @jobId)))`;
    return Number(this.#sql.run(insert, { jobId, now }).lastInsertRowid);
  }

  open(lease: OpenedLease, now: number): void {
    const set = `UPDATE transfer_leases SET state = 'open', protocol = @protocol, host = @host, base_path = @basePath,
      username = @username, public_key = @publicKey, opened_at = @now WHERE lease_id = @leaseId`;
    this.#sql.run(set, { ...lease, now });
  }

  end(leaseId: number, now: number, reason: string | null): void {
    const set = "UPDATE transfer_leases SET state = 'ended', ended_at = ?, reason = ?";
    this.#sql.run(`${set} WHERE lease_id = ? AND state <> 'ended'`, now, reason, leaseId);
  }

  /** Marks a grant as unknown: the response did not arrive, so a key may exist. */
  lose(leaseId: number, reason: string): void {
    this.#sql.run("UPDATE transfer_leases SET state = 'unknown', reason = ? WHERE lease_id = ?", reason, leaseId);
  }

  /** Marks grants as unknown that an ended process requested. */
  loseAsked(reason: string, jobId: JobId | null = null): LeaseRow[] {
    const set = `UPDATE transfer_leases SET state = 'unknown', reason = @reason
      WHERE state = 'asked' AND job_id = coalesce(@jobId, job_id)`;
    return this.#sql.all(`${set} RETURNING ${this.#table.columns}`, { reason, jobId });
  }

  setWay(leaseId: number, way: string): void {
    this.#sql.run('UPDATE transfer_leases SET way = ? WHERE lease_id = ?', way, leaseId);
  }

  allOpen(): LeaseRow[] {
    return this.#table.all("WHERE state = 'open' ORDER BY lease_id");
  }

  countKeys(jobId: JobId): number {
    const count = `SELECT count(*) AS keys FROM transfer_leases WHERE job_id = ? AND ${IS_KEY}`;
    return this.#sql.get<{ readonly keys: number }>(count, jobId)?.keys ?? 0;
  }

  lastOf(jobId: JobId): LeaseRow | undefined {
    return this.#table.get('WHERE job_id = ? ORDER BY lease_id DESC', jobId);
  }
}
