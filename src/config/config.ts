/** The parsed configuration, with defaults, absolute paths, and durations in milliseconds (`...Ms`). */
import path from 'node:path';
import type * as v from 'valibot';
import { isLoopback } from '../system/names.ts';
import type { configSchema } from './schema.ts';

export type Config = DeepReadonly<v.InferOutput<ReturnType<typeof configSchema>>> & {
  readonly file: string;
};

export type FleetConfig = Config & { readonly fleet: NonNullable<Config['fleet']> };

export function hasFleet(config: Config): config is FleetConfig {
  return config.fleet !== null;
}

type DeepReadonly<Value> = Value extends string | number | boolean | null
  ? Value
  : { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> };

type Service = Config['service'];

export function addressesOf(service: Service): string[] {
  const urls = service.protocol === 'soap' ? [service.fileTransferUrl, service.baseUrl] : [service.baseUrl];
  return urls.filter((url) => url !== null);
}

/** The address under which the capabilities of a service are stored. */
export function serviceAddress(service: Service): string {
  return service.protocol === 'soap' ? service.fileTransferUrl : `${service.baseUrl}${service.path}`;
}

/** The sockets at which the agent is asked, by what they allow; null without any. */
export function socketsOf({ api, fleet }: Config): Readonly<Record<'read' | 'control', string>> | null {
  const { directory } = api;
  if (directory === null || fleet !== null) return null;
  return { read: path.join(directory, 'read.sock'), control: path.join(directory, 'control.sock') };
}

/** REST always includes it. */
export function hasJobService(service: Service): boolean {
  return service.protocol === 'rest' || service.jobsUrl !== null;
}

/** What goes unencrypted to another machine, whatever proxy is before it. */
export function plainConnections({ service, notify }: Pick<Config, 'service' | 'notify'>) {
  const ofService = plainIn(addressesOf(service)).map((origin) => ({
    scope: 'the service',
    text: `${origin} is not encrypted: passwords and session codes are sent unencrypted`,
  }));
  const ofHooks = plainIn(notify.flatMap(({ url }) => url ?? [])).map((origin) => ({
    scope: 'notifications',
    text: `${origin} is not encrypted: names of jobs, lines of output and the address itself are sent unencrypted`,
  }));
  return [...ofService, ...ofHooks];
}

function plainIn(addresses: readonly string[]): string[] {
  const urls = addresses.map((url) => new URL(url));
  const plain = urls.filter(({ protocol, hostname }) => protocol !== 'https:' && !isLoopback(hostname));
  return [...new Set(plain.map(({ origin }) => origin))];
}

export const PLAIN_HINT = 'use https:// if the service has it';

export function warnOfPlainHttp(config: Config, log: { warn(fields: object, text: string): void }): void {
  for (const { scope, text: err } of plainConnections(config))
    log.warn({ scope, code: 'config', err, hint: PLAIN_HINT }, 'connection not encrypted');
}

/** Whether all rows of a fleet go through a network in plain text. */
export function isPlainDatabase(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { hostname, searchParams } = new URL(url);
  const mode = searchParams.get('sslmode') ?? process.env['PGSSLMODE'] ?? 'disable';
  // Not decodeURIComponent, which throws at a malformed escape.
  const host = searchParams.get('host') ?? new URLSearchParams(`host=${hostname}`).get('host') ?? '';
  const isElsewhere = host !== '' && !host.startsWith('/') && !isLoopback(host);
  return isElsewhere && mode === 'disable' && searchParams.get('ssl') === null;
}

export const PLAIN_DATABASE =
  'the connection to the database is not encrypted: password and job data are readable on the network';
export const PLAIN_DATABASE_HINT = 'set sslmode=verify-full';

/** What takes effect only at a start. */
const FIXED: Readonly<Record<string, (config: Config) => unknown>> = {
  'mirror.directory': ({ mirror }) => mirror.directory,
  'state.directory': ({ state }) => state.directory,
  // What was detected of a service, and its temporary keys, are of no other one.
  'the address of the service': ({ service }) => serviceAddress(service),
  fleet: ({ fleet }) => fleet,
};

/** The sections that differ between two configurations, for the log of a reload: their values may contain secrets. */
export function changesOf(before: Config, after: Config): { readonly sections: string[]; readonly restart: string[] } {
  const differ = (of: (config: Config) => unknown) => JSON.stringify(of(before)) !== JSON.stringify(of(after));
  const { file: _, ...all } = after;
  const sections = (Object.keys(all) as (keyof typeof all)[]).filter((key) => differ((config) => config[key]));
  const restart = Object.entries(FIXED).flatMap(([key, of]) => (differ(of) ? [key] : []));
  return { sections: sections.map((key) => (key === 'stallAfterMs' ? 'stallAfterMinutes' : key)), restart };
}
