/** The keys that differ between two configurations, for the log of a reload. Values may be secrets: they are not named. */
import { secretNameOf } from '../auth.ts';
import type { Config } from './config.ts';

/** Keys that take effect only at a start. */
const RESTART_KEYS = ['mirror.directory', 'state.directory', 'fleet'];

export interface Changes {
  readonly keys: string[];
  /** Changed keys that need a restart. */
  readonly restart: string[];
}

export function changesOf(before: Config, after: Config): Changes {
  const [old, fresh] = [valuesOf(before), valuesOf(after)];
  const keys = [...new Set([...old.keys(), ...fresh.keys()])].filter((key) => old.get(key) !== fresh.get(key));
  const isChanged = (fixed: string) => keys.some((key) => key === fixed || key.startsWith(`${fixed}.`));
  return { keys, restart: RESTART_KEYS.filter(isChanged) };
}

function valuesOf(config: Config): Map<string, string> {
  const { file: _, auth, watch, ...sections } = config;
  const { secret, ...authRest } = auth;
  const jobs = watch.map(({ job, ...request }) => [`watch job ${job}`, request]);
  const { kind, ...source } = secret;
  const kindName = { file: 'File', command: 'Command', credential: 'Credential' }[kind];
  const ofSecret = [`auth.${secretNameOf(auth.method)}${kindName}`, source];
  return new Map(
    [...leaves({ ...sections, auth: authRest }), ofSecret, ...jobs].map(([key, value]) => [
      String(key).replace(/Ms$/, ''),
      JSON.stringify(value),
    ]),
  );
}

/** Sections that count as a whole. */
const WHOLE = ['metrics.listen', 'view', 'watchMine'];

function leaves(value: object, prefix = ''): [key: string, value: unknown][] {
  return Object.entries(value).flatMap(([name, inner]: [string, unknown]): [string, unknown][] => {
    const key = `${prefix}${name}`;
    const isSection = typeof inner === 'object' && inner !== null && !Array.isArray(inner) && !WHOLE.includes(key);
    return isSection ? leaves(inner, `${key}.`) : [[key, inner]];
  });
}
