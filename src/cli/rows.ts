/** The rows of the jobs, of this machine or of the fleet. */
import { type Config, hasFleet } from '../config/config.ts';
import { withSharedStore } from '../daemon/state.ts';
import type { JobId } from '../job.ts';
import type { Store } from '../store/store.ts';

/** In a fleet, `only` has the results of this job one by one. */
export async function withRows<T>(
  config: Config,
  only: JobId | undefined,
  work: (store: Store) => T | Promise<T>,
): Promise<T> {
  if (!hasFleet(config)) return await withSharedStore(config, work);
  const { readFleet, withView } = await import('./fleet/client.ts');
  return await readFleet(config, (client) => withView({ config, client, only, withResults: true }, work));
}
