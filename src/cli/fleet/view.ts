/** What the agents of a fleet say of their jobs, as a store that is looked at and thrown away. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type Config, serviceAddress } from '../../config/config.ts';
import type { FleetClient } from '../../fleet/client.ts';
import type { JobId } from '../../job.ts';
import type { PortableRow } from '../../store/portable-rows.ts';
import { Store } from '../../store/store.ts';
import { systemClock } from '../../system/clock.ts';

export interface ViewOptions {
  readonly config: Config;
  readonly client: FleetClient;
  /** One job alone. */
  readonly only?: JobId | undefined;
  /** With its results one by one; else they are counted. */
  readonly withResults?: boolean;
}

/** Does `work` on a store that holds what is known of all jobs, or of one. */
export async function withView<T>(
  { config, client, only, withResults = false }: ViewOptions,
  work: (store: Store) => T | Promise<T>,
): Promise<T> {
  const rows = only !== undefined && withResults ? await client.allRows(only) : await client.rows(only);
  const [rule, orders] = [await client.rule(), await client.newOrders()];
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'jobtail-view-'));
  try {
    const store = new Store({ directory, service: serviceAddress(config.service), owner: true, now: systemClock.now });
    try {
      store.quickTransaction(() => {
        take(store, rows, withResults).forEach((row) => void client.ignore(row));
        for (const order of orders)
          if (only === undefined || order.jobId === only) store.jobs.watch(order, Math.round(order.madeAt));
        if (rule !== undefined) store.watchMine.save(rule);
      });
      return await work(store);
    } finally {
      store.close();
    }
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

function take(store: Store, rows: readonly PortableRow[], withResults: boolean): PortableRow[] {
  // What others refer to may be missing for a job that is taken just now.
  const known = new Set(rows.filter(({ table }) => table === 'jobs').map(({ jobId }) => jobId));
  const sound = rows.filter(({ jobId }) => known.has(jobId));
  return store.portableRows.take(sound, { isSameDirectory: true, hasResults: withResults });
}
