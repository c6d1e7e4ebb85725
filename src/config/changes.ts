/** The keys that differ between two configurations, for the log of a reload. Values may contain secrets. */
import { secretNameOf } from '../auth.ts';
import type { Config } from './config.ts';

/** Keys that take effect only at a start. */
const RESTART_KEYS = ['mirror.directory', 'state.directory', 'fleet'];

interface Changes {
  /** As in the file, such as `poll.maxIntervalSeconds`; of `watch`, one for each job. */
  readonly keys: string[];
  /** Those that need a restart. */
  readonly restart: string[];
}

export function changesOf(before: Config, after: Config): Changes {
  const [old, fresh] = [entriesOf(before), entriesOf(after)];
  const keys = [...new Set([...old.keys(), ...fresh.keys()])].filter((key) => old.get(key) !== fresh.get(key));
  const isChanged = (fixed: string) => keys.some((key) => key === fixed || key.startsWith(`${fixed}.`));
  return { keys, restart: RESTART_KEYS.filter(isChanged) };
}

function entriesOf({ file: _, auth, watch, ...sections }: Config): ReadonlyMap<string, string> {
  const { secret, ...authRest } = auth;
  const source = { file: 'File', command: 'Command', credential: 'Credential' }[secret.kind];
  const entries = [
    ...leaves({ ...sections, auth: authRest }).map(([key, value]) => [nameInFile(key), value] as const),
    [`auth.${secretNameOf(auth.method)}${source}`, secret] as const,
    ...watch.map(({ job, ...request }) => [`watch job ${job}`, request] as const),
  ];
  return new Map(entries.map(([key, value]) => [key, JSON.stringify(value)]));
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

/** Of durations that are not in seconds. */
const UNITS: Readonly<Record<string, string>> = { stallAfterMs: 'Minutes', 'retention.settledMs': 'Days' };

const nameInFile = (key: string) => key.replace(/Ms$/, UNITS[key] ?? 'Seconds');
