/** The sections that differ between two configurations, for the log of a reload: their values may contain secrets. */
import { type Config, serviceAddress } from './config.ts';

/** What takes effect only at a start. */
const FIXED: Readonly<Record<string, (config: Config) => unknown>> = {
  'mirror.directory': ({ mirror }) => mirror.directory,
  'state.directory': ({ state }) => state.directory,
  // What was detected of a service, and its temporary keys, are of no other one.
  'the address of the service': ({ service }) => serviceAddress(service),
  fleet: ({ fleet }) => fleet,
};

export function changesOf(before: Config, after: Config): { readonly sections: string[]; readonly restart: string[] } {
  const differ = (of: (config: Config) => unknown) => JSON.stringify(of(before)) !== JSON.stringify(of(after));
  const { file: _, ...all } = after;
  const sections = (Object.keys(all) as (keyof typeof all)[]).filter((key) => differ((config) => config[key]));
  const restart = Object.entries(FIXED).flatMap(([key, of]) => (differ(of) ? [key] : []));
  return { sections: sections.map((key) => (key === 'stallAfterMs' ? 'stallAfterMinutes' : key)), restart };
}
