/** A copy of the rows that the fleet's database has, as a store: whatever shows the jobs of an agent can show them. */
import fs from 'node:fs';
import type { JobId } from '../job.ts';
import type { PortableRow } from '../store/portable-rows.ts';
import { Store } from '../store/store.ts';
import { temporaryDirectory } from '../system/directories.ts';
import type { FleetClient } from './client.ts';

export interface CopyOptions {
  /** All jobs if left out. */
  readonly only?: JobId | undefined;
  /** Jobs with their results one by one; those of the others are counted. */
  readonly withResults?: readonly JobId[];
}

export class FleetCopy {
  readonly store: Store;
  readonly #directory = temporaryDirectory('jobtail-view-');
  /** The rows of each job in the store, as text. */
  #copied: ReadonlyMap<JobId, string> = new Map();

  /** `service`: the address whose capabilities the store has. */
  constructor(service: string) {
    try {
      this.store = new Store({ directory: this.#directory, service, owner: true, now: Date.now });
    } catch (error) {
      this.#remove();
      throw error;
    }
  }

  close(): void {
    this.store.close();
    this.#remove();
  }

  /** Copies the rows of the jobs that changed, and the commands that no agent has executed yet. */
  async refresh(client: FleetClient, { only, withResults = [] }: CopyOptions = {}): Promise<void> {
    let rows = await client.rows(only);
    for (const jobId of withResults) {
      const others = rows.filter((row) => row.jobId !== jobId || !isResult(row));
      rows = others.concat((await client.allRows(jobId)).filter(isResult));
    }
    const [rule, commands] = [await client.rule(), await client.newCommands()];
    const capabilities = await client.capabilities(this.store.capabilities.service);
    const shown = commands.filter(({ jobId }) => only === undefined || jobId === only);
    const { store } = this;
    const copied = new Map<JobId, string>();
    store.quickTransaction(() => {
      // Rows of a job that is acquired at this moment may be incomplete.
      const known = new Set(rows.flatMap(({ table, jobId }) => (table === 'jobs' ? [jobId] : [])));
      const byJob = grouped(rows.filter(({ jobId }) => known.has(jobId)));
      const ordered = grouped(shown);
      const jobs = new Set([...known, ...ordered.keys()]);
      for (const jobId of jobs) {
        const [its, orders] = [byJob.get(jobId) ?? [], ordered.get(jobId) ?? []];
        const text = JSON.stringify([its, orders]);
        copied.set(jobId, text);
        if (this.#copied.get(jobId) === text) continue;
        store.portableRows.forget(jobId);
        for (const row of store.portableRows.take(its, withResults.includes(jobId))) client.ignore(row);
        for (const { madeAt, ...order } of orders) store.jobs.watch(order, Math.round(madeAt));
      }
      for (const jobId of this.#copied.keys()) if (!jobs.has(jobId)) store.portableRows.forget(jobId);
      for (const { name, value } of capabilities) store.capabilities.set(name, value);
      if (rule === undefined) store.watchMine.remove('command');
      else store.watchMine.save(rule);
    });
    this.#copied = copied;
  }

  #remove(): void {
    fs.rmSync(this.#directory, { recursive: true, force: true });
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

const isResult = ({ table }: PortableRow) => table === 'result_files';
