/** The parts of a view that serves, as its routes use them. */
import { isOnNetworkFileSystem } from '../store/database.ts';
import { Contents } from './content/contents.ts';
import { LineIndexes } from './content/line-index.ts';
import { Changes } from './events/changes.ts';
import { FileLengths } from './events/file-lengths.ts';
import { Snapshots } from './events/snapshots.ts';
import { type FleetSource, JobStores } from './fleet.ts';
import { Limits } from './refused.ts';
import { OpenStore, type ViewSettings } from './settings.ts';

/** The subject of changes of the store and the agent; each mirror is a subject of its own. */
export const STATE = 'state';

export interface ViewOptions {
  readonly settings: ViewSettings;
  /** Null without a fleet. */
  readonly fleet: FleetSource | null;
  /** Receives errors that should not happen. */
  readonly onFailure: (error: unknown) => void;
}

export class ViewParts {
  readonly settings: ViewSettings;
  readonly onFailure: (error: unknown) => void;
  readonly changes = new Changes();
  readonly indexes = new LineIndexes();
  readonly limits = new Limits();
  readonly store: OpenStore;
  readonly stores: JobStores;
  readonly contents: Contents;
  readonly lengths: FileLengths;
  readonly snapshots: Snapshots;

  constructor({ settings, fleet, onFailure }: ViewOptions) {
    const { mirrorDirectory } = settings;
    const onChange = () => this.changes.report(STATE);
    this.settings = settings;
    this.onFailure = onFailure;
    const store = new OpenStore(settings);
    this.store = store;
    const stores = new JobStores(store.get, fleet, onChange);
    this.stores = stores;
    this.contents = new Contents(mirrorDirectory, stores.withBytes);
    this.snapshots = new Snapshots({ store, stores, onChange });
    this.lengths = new FileLengths({
      mirrorDirectory,
      onNetwork: isOnNetworkFileSystem(mirrorDirectory),
      contents: this.contents,
      indexes: this.indexes,
      onChange: (name) => this.changes.report(name),
    });
  }

  async close(): Promise<void> {
    this.snapshots.close();
    await this.stores.close();
    this.store.close();
  }
}
