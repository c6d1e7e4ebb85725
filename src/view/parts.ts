/** The parts of a view that serves, as its routes use them. */
import { Contents } from './content/contents.ts';
import { LineIndexes } from './content/line-index.ts';
import type { Figures } from './events/figures.ts';
import { Snapshots } from './events/snapshots.ts';
import { type FleetSource, JobStores } from './fleet.ts';
import { Limits } from './refused.ts';
import { OpenStore, type ViewSettings } from './settings.ts';

export interface ViewOptions {
  readonly settings: ViewSettings;
  /** Null without a fleet. */
  readonly fleet: FleetSource | null;
  /** Null where the view does not run within an agent. */
  readonly figures: Figures | null;
  /** Receives errors that should not happen. */
  readonly onFailure: (error: unknown) => void;
}

export class ViewParts {
  readonly settings: ViewSettings;
  readonly onFailure: (error: unknown) => void;
  readonly indexes = new LineIndexes();
  readonly limits = new Limits();
  readonly store: OpenStore;
  readonly stores: JobStores;
  readonly contents: Contents;
  readonly snapshots: Snapshots;
  readonly figures: Figures | null;

  constructor({ settings, fleet, figures, onFailure }: ViewOptions) {
    this.settings = settings;
    this.figures = figures;
    this.onFailure = onFailure;
    this.store = new OpenStore(settings);
    this.stores = new JobStores(this.store.get, fleet);
    this.contents = new Contents(settings.mirrorDirectory, this.stores.withBytes);
    this.snapshots = new Snapshots(this.store, this.stores);
  }

  async close(): Promise<void> {
    await this.stores.close();
    this.store.close();
  }
}
