/** What the view is given: its settings and the store of the agent. */
import { Store } from '../store/store.ts';

export interface ViewProgram {
  /** The version of the program. */
  readonly program: string;
  /** The agent of this state directory, if this is its process. */
  readonly agentPid: number | null;
}

/** Crosses to the thread of the view as a copy. */
export interface ViewSettings extends ViewProgram {
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
}

/** The store of the agent, opened to be read, and opened again when it was removed or replaced. */
export function openStore({ stateDirectory: directory, service }: ViewSettings) {
  let store: Store | undefined;
  const close = () => {
    store?.close();
    store = undefined;
  };
  return {
    close,
    /** @throws JobtailError */
    get(): Store {
      if (store !== undefined) return store;
      const opened = new Store({ directory, service: service.address, owner: false, now: Date.now });
      opened.onlyRead();
      store = opened;
      return opened;
    },
    /** Closes a store that was removed or replaced; returns whether it did. */
    closeIfGone(): boolean {
      const isGone = store?.isGone() === true;
      if (isGone) close();
      return isGone;
    },
  };
}

export type OpenStore = ReturnType<typeof openStore>;
