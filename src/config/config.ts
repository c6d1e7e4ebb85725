/**
 * The configuration as the rest of the program sees it: checked, complete (defaults filled in), paths absolute,
 * durations in milliseconds. The names are those of the YAML file; only durations change their ending (`Seconds`,
 * `Minutes`, `Days` -> `Ms`).
 */
import type * as z from 'zod';
import type { configSchema } from './schema.ts';

export type Config = DeepReadonly<z.output<ReturnType<typeof configSchema>>> & {
  /** The file this was read from, absolute. */
  readonly file: string;
};

/** One that names a fleet. */
export type FleetConfig = Config & { readonly fleet: NonNullable<Config['fleet']> };

export function hasFleet(config: Config): config is FleetConfig {
  return config.fleet !== null;
}

type DeepReadonly<Value> = Value extends string | number | boolean | null
  ? Value
  : { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> };

type Service = Config['service'];

/** The addresses of the service and of its sign-in. */
export function addressesOf(service: Service): string[] {
  const urls = service.protocol === 'soap' ? [service.fileTransferUrl, service.baseUrl] : [service.baseUrl];
  return urls.filter((url) => url !== null);
}

/** The address under which the capabilities of a service are stored. */
export function serviceAddress(service: Service): string {
  return service.protocol === 'soap' ? service.fileTransferUrl : `${service.baseUrl}${service.path}`;
}

/** Whether there is a job service: with REST it is part of the same service. */
export function hasJobService(service: Service): boolean {
  return service.protocol === 'rest' || service.jobsUrl !== null;
}

/** Origins that are neither encrypted nor on this machine, whatever proxy lies before them. */
export function plainOrigins({ service }: Pick<Config, 'service'>): string[] {
  const urls = addressesOf(service).map((url) => new URL(url));
  const plain = urls.filter(({ protocol, hostname }) => protocol !== 'https:' && !isHere(hostname));
  return [...new Set(plain.map(({ origin }) => origin))];
}

/** What is wrong with such an origin, and what to do about it. */
export const plainText = (origin: string) =>
  `${origin} is not encrypted: passwords and session codes are sent unencrypted`;
export const PLAIN_HINT = 'use https:// if the service has it';

/** Logs it where the agent follows jobs. */
export function warnOfPlainHttp(
  config: Pick<Config, 'service'>,
  log: { warn(fields: object, text: string): void },
): void {
  for (const origin of plainOrigins(config)) {
    log.warn(
      { scope: 'the service', code: 'config', err: plainText(origin), hint: PLAIN_HINT },
      'connection not encrypted',
    );
  }
}

const isHere = (hostname: string) =>
  hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
