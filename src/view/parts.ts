/** The parts of a view that serves, as its routes use them. */

import { Limits } from '../http/refused.ts';
import { Contents } from './content/contents.ts';
import { LineIndexes } from './content/line-index.ts';
import type { Figures } from './events/figures.ts';
import { Snapshots } from './events/snapshots.ts';
import { type FleetSource, JobStores } from './fleet.ts';
import { openStore, type ViewSettings } from './settings.ts';

export interface ViewOptions {
  readonly settings: ViewSettings;
  readonly fleet: FleetSource | null;
  /** Null where the view does not run within an agent. */
  readonly figures: Figures | null;
  /** Milliseconds between two reads of the store; 1,000 by default. */
  readonly readEveryMs?: number;
  /** Receives errors that should not happen. */
  readonly onFailure: (error: unknown) => void;
}

export type ViewParts = ReturnType<typeof partsOf>;

export function partsOf({ settings, fleet, figures, onFailure, readEveryMs = 1_000 }: ViewOptions) {
  const store = openStore(settings);
  const stores = new JobStores(store.get, fleet);
  return {
    settings,
    figures,
    onFailure,
    store,
    stores,
    indexes: new LineIndexes(),
    limits: new Limits(),
    contents: new Contents(settings.mirrorDirectory, stores.withBytes),
    snapshots: new Snapshots(settings, store, stores, readEveryMs),
    async close(): Promise<void> {
      await stores.close();
      store.close();
    },
  };
}
