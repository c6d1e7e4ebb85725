/** A copy of the rows that the fleet's database has, as a store: whatever shows the jobs of an agent can show them. */
import type { JobId } from '../../job.ts';
import type { PortableRow } from '../../store/portable-rows.ts';
import { IN_MEMORY, Store } from '../../store/store.ts';
import { Commands } from '../commands/commands.ts';
import type { Database } from '../database/database.ts';
import { NOT_STORED } from './border.ts';
import { rowsOfJobs, shownRows } from './handover.ts';

export interface CopyOptions {
  /** All jobs if left out. */
  readonly only?: JobId | undefined;
  /** Jobs with their results one by one; those of the others are counted. */
  readonly withResults?: readonly JobId[];
}

export class FleetCopy {
  readonly #service: string;
  #store: Store | undefined;
  /** The rows of each job in the store, as text. */
  #copied: ReadonlyMap<JobId, string> = new Map();

  /** `service`: the address whose capabilities the store has. */
  constructor(service: string) {
    this.#service = service;
  }

  /** Copies the rows of the jobs that changed, and the commands that no agent has executed yet, into one store. */
  async refresh(database: Database, { only, withResults = [] }: CopyOptions): Promise<Store> {
    this.#store ??= new Store({ directory: IN_MEMORY, service: this.#service, owner: true, now: Date.now });
    const store = this.#store;
    const rows: PortableRow[] = (await shownRows(database, only)).map(({ polledSince, ...one }) => {
      if (polledSince === null) return one;
      const row = JSON.parse(one.row) as { readonly polled_at: number | null };
      return { ...one, row: JSON.stringify({ ...row, polled_at: Math.max(row.polled_at ?? 0, polledSince) }) };
    });
    for await (const page of rowsOfJobs(database, withResults))
      rows.push(...page.filter(({ table }) => table === 'result_files'));
    const { border } = database;
    const [rule] = await database.query<{ readonly rule: unknown }>('SELECT rule FROM {s}.rules');
    const ruleInForce = border.rule(rule?.rule);
    const commands = await new Commands(database).ofNew();
    const capabilities = await database.query<{ readonly name: string; readonly value: string }>(
      'SELECT name, value FROM {s}.habits WHERE service = $1',
      [this.#service],
    );
    const copied = new Map<JobId, string>();
    store.transaction(() => {
      // Rows of a job that is acquired at this moment may be incomplete.
      const known = new Set(rows.flatMap(({ table, jobId }) => (table === 'jobs' ? [jobId] : [])));
      const byJob = grouped(rows.filter(({ jobId }) => known.has(jobId)));
      const ordered = grouped(commands.filter(({ kind, jobId }) => kind === 'watch' && (only ?? jobId) === jobId));
      const jobs = new Set([...known, ...ordered.keys()]);
      for (const jobId of jobs) {
        const [its, orders] = [byJob.get(jobId) ?? [], ordered.get(jobId) ?? []];
        const text = JSON.stringify([its, orders]);
        copied.set(jobId, text);
        if (this.#copied.get(jobId) === text) continue;
        store.portableRows.forget(jobId);
        for (const row of store.portableRows.take(its, withResults.includes(jobId))) border.refuse(row, NOT_STORED);
        for (const { body, madeAt } of orders) if (body !== null) store.jobs.watch(body, Math.round(madeAt));
      }
      for (const jobId of this.#copied.keys()) if (!jobs.has(jobId)) store.portableRows.forget(jobId);
      for (const { name, value } of capabilities) store.capabilities.set(name, value);
      if (ruleInForce === undefined) store.watchMine.remove('command');
      else store.watchMine.save(ruleInForce);
    });
    this.#copied = copied;
    return store;
  }

  close(): void {
    this.#store?.close();
  }
}

function grouped<Row extends { readonly jobId: JobId }>(rows: readonly Row[]): ReadonlyMap<JobId, Row[]> {
  const groups = new Map<JobId, Row[]>();
  for (const row of rows) {
    const group = groups.get(row.jobId);
    if (group === undefined) groups.set(row.jobId, [row]);
    else group.push(row);
  }
  return groups;
}
