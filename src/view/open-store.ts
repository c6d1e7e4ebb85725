/** The store of the agent, opened to be read, and opened again when somebody removed or replaced it. */
import { Store } from '../store/store.ts';
import type { ViewSettings } from './settings.ts';

export class OpenStore {
  readonly #settings: ViewSettings;
  #store: Store | undefined;

  constructor(settings: ViewSettings) {
    this.#settings = settings;
  }

  /** @throws JobtailError */
  get = (): Store => {
    this.#store ??= this.#open();
    return this.#store;
  };

  /** Lets go of a store that is no longer the one of the state directory; whether it did. */
  look(): boolean {
    if (this.#store?.isGone() !== true) return false;
    this.close();
    return true;
  }

  close(): void {
    this.#store?.close();
    this.#store = undefined;
  }

  #open(): Store {
    const { stateDirectory, service } = this.#settings;
    const store = new Store({ directory: stateDirectory, service: service.address, owner: false, now: Date.now });
    store.onlyRead();
    return store;
  }
}
