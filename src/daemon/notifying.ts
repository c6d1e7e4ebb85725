/** The notifications of one configuration, composed for a process that follows jobs. */
import os from 'node:os';
import type { Log } from '../agent/ports.ts';
import type { Config } from '../config/config.ts';
import { Notifications } from '../notify/notifications.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';

export interface NotifyingOptions {
  readonly config: Config;
  readonly store: Store;
  readonly log: Log;
  /** Why the agent cannot do its work now; undefined if it can. */
  readonly degraded?: () => string | undefined;
}

/** Who sends: of CloudEvents, the `source`. */
export const sourceOf = ({ fleet }: Pick<Config, 'fleet'>) => `jobtail/${fleet?.name ?? os.hostname()}`;

/** Addresses are reached as the service is, by its proxy; certificates are checked against the roots of the system. */
export const httpOf = ({ service }: Pick<Config, 'service'>) =>
  service.proxy === null ? {} : { proxy: service.proxy };

/** Not begun yet. */
export function newNotifications({ config, store, log, degraded = () => undefined }: NotifyingOptions): Notifications {
  const parts = { config, store, log, degraded, clock: systemClock };
  return new Notifications({ ...parts, source: sourceOf(config), http: httpOf(config) });
}
