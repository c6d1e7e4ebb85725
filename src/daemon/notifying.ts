/** The notifications of one configuration, composed for a process that follows jobs. */
import os from 'node:os';
import type { Log } from '../agent/ports.ts';
import type { Config } from '../config/config.ts';
import { Notifications } from '../notify/notifications.ts';
import { HttpClient } from '../remote/http/http-client.ts';
import type { Store } from '../store/store.ts';
import { type Clock, systemClock } from '../system/clock.ts';

export interface NotifyingOptions {
  readonly config: Config;
  readonly store: Store;
  readonly log: Log;
  /** Why the agent cannot do its work now; undefined if it can. */
  readonly degraded?: () => string | undefined;
  /** The machine's by default. */
  readonly clock?: Clock;
  /** By the network by default. */
  readonly http?: Pick<HttpClient, 'request' | 'close'>;
}

const LIMITS = { connectMs: 10_000, headersMs: 30_000, idleMs: 30_000, totalMs: 60_000 };

/** Who sends: of CloudEvents, the `source`. */
export const sourceOf = ({ fleet }: Pick<Config, 'fleet'>) => `jobtail/${fleet?.name ?? os.hostname()}`;

/** Addresses are reached as the service is, by its proxy; certificates are checked against the roots of the system. */
export const notifyHttp = ({ service: { proxy } }: { readonly service: Pick<Config['service'], 'proxy'> }) =>
  new HttpClient({ ...(proxy === null ? {} : { proxy }), limits: LIMITS });

/** Not begun yet. */
export function newNotifications(options: NotifyingOptions): Notifications {
  const { config, degraded = () => undefined, clock = systemClock, http = notifyHttp(config) } = options;
  return new Notifications({ ...options, degraded, clock, http, source: sourceOf(config) });
}
