/** The state directory: its open database, grouped commits, and the file that wakes the agent. */
import fs from 'node:fs';
import path from 'node:path';
import { IN_MEMORY, openDatabase } from './database.ts';
import { JobInformations, Jobs, Requests, TaskSearches, WatchMine } from './jobs.ts';
import { LiveFiles } from './live-files.ts';
import { Outbox } from './outbox.ts';
import { FleetLeases, PortableRows, RowChanges } from './portable-rows.ts';
import { ResultFiles } from './results.ts';
import type { ResultSyncRow } from './rows.ts';
import { Capabilities, TransferLeases } from './service.ts';
import { JobTable, Sql } from './sql.ts';
import { writeStateFile } from './state-files.ts';
import { Totals } from './totals.ts';

export { IN_MEMORY };

/** A process that changed the store for the running agent touches this file of the state directory. */
export const WAKE_FILE = 'wake';

interface StoreOptions {
  /** Or `IN_MEMORY`. */
  readonly directory: string;
  /** The address of the service whose capabilities are stored. */
  readonly service: string;
  /** Whether this process has the lock of the directory: then it upgrades the database, and renames a broken one. */
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
  readonly resultSyncs: JobTable<ResultSyncRow>;
  readonly leases: TransferLeases;
  readonly requests: Requests;
  readonly capabilities: Capabilities;
  readonly fleetLeases: FleetLeases;
  readonly portableRows: PortableRows;
  readonly totals: Totals;
  readonly outbox: Outbox;
  /** The new name of a broken database that was found. */
  readonly quarantined: string | undefined;
  readonly #sql: Sql;
  readonly #file: string;
  readonly #inode: bigint | undefined;

  constructor({ directory, service, owner, now }: StoreOptions) {
    this.directory = directory;
    this.#file = directory === IN_MEMORY ? IN_MEMORY : path.join(directory, 'agent.db');
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
      this.resultSyncs = new JobTable<ResultSyncRow>(sql, 'result_passes', { arriving: 'json' });
      this.leases = new TransferLeases(sql);
      this.requests = new Requests(sql);
      this.capabilities = new Capabilities(sql, service);
      this.fleetLeases = new FleetLeases(sql);
      this.portableRows = new PortableRows(sql);
      this.totals = new Totals(sql);
      this.outbox = new Outbox(sql);
    } catch (error) {
      // A table is missing.
      sql.close();
      throw error;
    }
  }

  transaction<T>(work: () => T): T {
    return this.#sql.transaction(work);
  }

  /** A number that changes with every change of the database, by any process. */
  version(): number {
    const select = 'SELECT data_version + total_changes() AS version FROM pragma_data_version';
    return this.#sql.sums<{ readonly version: number }>(select).version;
  }

  onlyRead(): void {
    this.#sql.pragma('query_only = ON');
  }

  /** Whether another process removed or replaced the open database. */
  isGone(): boolean {
    try {
      return inodeOf(this.#file) !== this.#inode;
    } catch (error) {
      // A file has replaced the directory. Other errors may be temporary.
      return (error as NodeJS.ErrnoException).code === 'ENOTDIR';
    }
  }

  /** Records which rows of jobs this process changes from now on. */
  noteChanges(): RowChanges {
    return new RowChanges(this.#sql);
  }

  wake(): void {
    writeStateFile(path.join(this.directory, WAKE_FILE), String(Date.now()));
  }

  close(): void {
    this.#sql.close();
  }
}

function inodeOf(file: string): bigint | undefined {
  return fs.lstatSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}

interface CommitsOptions {
  readonly transaction: (work: () => void) => void;
  /** The returned function cancels the timer. */
  readonly timer: (delayMs: number, callback: () => void) => () => void;
}

interface WaitingWrite {
  readonly write: () => void;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Usual delay of a commit, to share its transaction with others. */
const GATHER_MS = 5;

/** Groups commits: polls that end within a short time share one transaction, and so one flush of the disk. */
export class Commits {
  readonly #options: CommitsOptions;
  #waiting: WaitingWrite[] = [];
  #dueInMs = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(options: CommitsOptions) {
    this.#options = options;
  }

  /** Resolves when the transaction of `write` is on the disk; it starts within `withinMs`. A group fails as a whole. */
  commit(write: () => void, withinMs = GATHER_MS): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, resolve, reject });
      if (withinMs >= this.#dueInMs) return;
      this.#cancel?.();
      this.#dueInMs = withinMs;
      this.#cancel = this.#options.timer(withinMs, () => this.flush());
    });
  }

  flush(): void {
    this.#cancel?.();
    this.#dueInMs = Number.POSITIVE_INFINITY;
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    try {
      this.#options.transaction(() => {
        for (const { write } of waiting) write();
      });
    } catch (error) {
      for (const { reject } of waiting) reject(error);
      return;
    }
    for (const { resolve } of waiting) resolve();
  }
}
