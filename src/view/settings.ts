/** What the view is given: its settings and the store of the agent. */
import { Store } from '../store/store.ts';

/** Crosses to the thread of the view as a copy. */
export interface ViewSettings {
  readonly mirrorDirectory: string;
  /** Of lines that look like errors; null: the usual ones. */
  readonly errorPatterns: readonly string[] | null;
  readonly stateDirectory: string;
  readonly service: {
    /** The key of its capabilities in the store. */
    readonly address: string;
    readonly protocol: 'soap' | 'rest';
    readonly hasJobService: boolean;
    readonly concurrency: number;
    readonly requestsPerMinute: number | null;
  };
  /** An address of this machine, or the path of a Unix socket. */
  readonly listen: { readonly host: string; readonly port: number } | { readonly path: string };
  /** Where a reverse proxy shows it, ending in a slash; null if nothing stands before it. */
  readonly publicUrl: string | null;
  /** Null: `view-token` in the state directory. */
  readonly tokenFile: string | null;
  /** The version of the program. */
  readonly program: string;
  /** The agent of this state directory, if this is its process. */
  readonly agentPid: number | null;
}

/** The store of the agent, opened to be read, and opened again when it was removed or replaced. */
export class OpenStore {
  readonly settings: ViewSettings;
  #store: Store | undefined;

  constructor(settings: ViewSettings) {
    this.settings = settings;
  }

  /** @throws JobtailError */
  get = (): Store => {
    this.#store ??= this.#open();
    return this.#store;
  };

  /** Lets go of a store that is no longer the one of the state directory; whether it did. */
  closeIfGone(): boolean {
    if (this.#store?.isGone() !== true) return false;
    this.close();
    return true;
  }

  close(): void {
    this.#store?.close();
    this.#store = undefined;
  }

  #open(): Store {
    const { stateDirectory, service } = this.settings;
    const store = new Store({ directory: stateDirectory, service: service.address, owner: false, now: Date.now });
    store.onlyRead();
    return store;
  }
}
