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
  readonly degraded?: () => string | undefined;
  readonly clock?: Clock;
  readonly http?: Pick<HttpClient, 'request' | 'close'>;
}

const LIMITS = { connectMs: 10_000, headersMs: 30_000, idleMs: 30_000, totalMs: 60_000 };

/** The sender: the `source` of CloudEvents. */
export const sourceOf = ({ fleet }: Pick<Config, 'fleet'>) => `jobtail/${fleet?.name ?? os.hostname()}`;

/** Uses the proxy of the service; certificates are checked against the roots of the system. */
export const notifyHttp = ({ service: { proxy } }: { readonly service: Pick<Config['service'], 'proxy'> }) =>
  new HttpClient({ ...(proxy === null ? {} : { proxy }), limits: LIMITS });

export function newNotifications(options: NotifyingOptions): Notifications {
  const { config, degraded = () => undefined, clock = systemClock, http = notifyHttp(config) } = options;
  return new Notifications({ ...options, degraded, clock, http, source: sourceOf(config) });
}
