/** The state directory: its database, opened, and the file that wakes the agent up. */
import fs, { constants } from 'node:fs';
import path from 'node:path';
import { openDatabase } from './database.ts';
import { FleetLeases } from './fleet-leases.ts';
import { Habits } from './habits.ts';
import { JobInformations } from './job-information.ts';
import { Jobs } from './jobs.ts';
import { LiveFiles } from './live-files.ts';
import { PortableRows } from './portable-rows.ts';
import { Requests } from './requests.ts';
import { ResultFiles } from './result-files.ts';
import { ResultSyncs } from './result-syncs.ts';
import { RowChanges } from './row-changes.ts';
import { Sql } from './sql.ts';
import { openStateFile } from './state-files.ts';
import { TaskSearches } from './task-searches.ts';
import { Totals } from './totals.ts';
import { TransferLeases } from './transfer-leases.ts';
import { WatchMine } from './watch-mine.ts';

/** Whoever changed the store for the running agent touches this file of the state directory. */
export const WAKE_FILE = 'wake';

export interface StoreOptions {
  readonly directory: string;
  /** The address of the service whose habits are kept. */
  readonly service: string;
  /** True for the holder of the directory's lock: migrates, and sets a broken database aside. */
  readonly owner: boolean;
  readonly now: () => number;
}

export class Store {
  readonly directory: string;
  readonly jobs: Jobs;
  readonly liveFiles: LiveFiles;
  readonly taskSearches: TaskSearches;
  readonly jobInformation: JobInformations;
  readonly watchMine: WatchMine;
  readonly results: ResultFiles;
  readonly resultSyncs: ResultSyncs;
  readonly leases: TransferLeases;
  readonly requests: Requests;
  readonly habits: Habits;
  readonly fleetLeases: FleetLeases;
  readonly portableRows: PortableRows;
  readonly totals: Totals;
  /** Where a broken database was set aside when this one was opened. */
  readonly quarantined: string | undefined;
  readonly #sql: Sql;
  readonly #file: string;
  readonly #inode: bigint | undefined;

  constructor({ directory, service, owner, now }: StoreOptions) {
    this.directory = directory;
    this.#file = path.join(directory, 'agent.db');
    const { db, quarantined } = openDatabase({ file: this.#file, owner, now });
    const sql = new Sql(db, this.#file);
    this.#sql = sql;
    this.#inode = inodeOf(this.#file);
    this.quarantined = quarantined;
    try {
      this.jobs = new Jobs(sql);
      this.liveFiles = new LiveFiles(sql);
      this.taskSearches = new TaskSearches(sql);
      this.jobInformation = new JobInformations(sql);
      this.watchMine = new WatchMine(sql);
      this.results = new ResultFiles(sql);
      this.resultSyncs = new ResultSyncs(sql);
      this.leases = new TransferLeases(sql);
      this.requests = new Requests(sql);
      this.habits = new Habits(sql, service);
      this.fleetLeases = new FleetLeases(sql);
      this.portableRows = new PortableRows(sql);
      this.totals = new Totals(sql);
    } catch (error) {
      // A table is missing.
      sql.close();
      throw error;
    }
  }

  /** Runs `work` as one transaction; what SQLite throws becomes a JobtailError. */
  transaction<T>(work: () => T): T {
    return this.#sql.transaction(work);
  }

  /**
   * A transaction that does not wait for the disk: a kill takes nothing of it, a power loss may. Ten times as quick, and
   * only for a database with a write-ahead log.
   */
  quickTransaction<T>(work: () => T): T {
    this.#sql.pragma('synchronous = NORMAL');
    try {
      return this.transaction(work);
    } finally {
      this.#sql.pragma('synchronous = FULL');
    }
  }

  /** A number that is another one after every commit of another process or thread. */
  version(): number {
    return this.#sql.sums<{ readonly version: number }>('SELECT data_version AS version FROM pragma_data_version')
      .version;
  }

  /** From now on nothing can be written by this one. */
  onlyRead(): void {
    this.#sql.pragma('query_only = ON');
  }

  /** Whether the file of the database is no longer the one that was opened: somebody removed or replaced it. */
  isGone(): boolean {
    try {
      return inodeOf(this.#file) !== this.#inode;
    } catch (error) {
      // A file stands where its directory was. What else keeps it from being looked at may pass.
      return (error as NodeJS.ErrnoException).code === 'ENOTDIR';
    }
  }

  /** From now on, notes which rows of jobs are changed by this process. */
  noteChanges(): RowChanges {
    return new RowChanges(this.#sql);
  }

  /** Tells the running agent to look at the store now. */
  wake(): void {
    const opened = openStateFile(path.join(this.directory, WAKE_FILE), constants.O_WRONLY | constants.O_CREAT);
    try {
      fs.writeSync(opened, String(Date.now()), 0);
    } finally {
      fs.closeSync(opened);
    }
  }

  close(): void {
    this.#sql.close();
  }
}

function inodeOf(file: string): bigint | undefined {
  return fs.lstatSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}
