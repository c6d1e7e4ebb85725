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
