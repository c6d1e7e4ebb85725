/** The differences between two configurations, for the log of a reload. */
import { type SecretSource, secretNameOf } from '../auth.ts';
import { countOf } from '../numbers.ts';
import type { Config } from './config.ts';

/** Keys that take effect only at a start. */
const RESTART_KEYS = ['mirror.directory', 'state.directory', 'fleet'];

export interface Changes {
  /** One for each changed key: `poll.maxIntervalSeconds 60 -> 30`. */
  readonly lines: string[];
  /** Changed keys that need a restart. */
  readonly restart: string[];
}

export function changesOf(before: Config, after: Config): Changes {
  const [old, fresh] = [entriesOf(before), entriesOf(after)];
  const keys = [...new Set([...old.keys(), ...fresh.keys()])];
  const changed = keys.filter((key) => old.get(key)?.compared !== fresh.get(key)?.compared);
  const lines = changed.map((key) => {
    const [from, to] = [old.get(key)?.shown ?? 'nothing', fresh.get(key)?.shown ?? 'nothing'];
    return from === to ? `${key} changed` : `${key} ${from} -> ${to}`;
  });
  const isChanged = (fixed: string) => changed.some((key) => key === fixed || key.startsWith(`${fixed}.`));
  return { lines, restart: RESTART_KEYS.filter(isChanged) };
}

/** The compared value, and the shown one: a command may contain secrets. */
interface Entry {
  readonly compared: string;
  readonly shown: string;
}

function entriesOf(config: Config): Map<string, Entry> {
  const { file: _, auth, watch, notify, ...sections } = config;
  const { secret, ...authRest } = auth;
  const entries = new Map<string, Entry>();
  const add = (key: string, shown: string, compared = shown) => entries.set(key, { shown, compared });

  for (const [key, value] of leaves({ ...sections, auth: authRest })) add(...inWordsOfFile(key, value));
  const source = { file: 'File', command: 'Command', credential: 'Credential' }[secret.kind];
  add(`auth.${secretNameOf(auth.method)}${source}`, ...secretTexts(secret));
  if (secret.kind === 'command') add(...inWordsOfFile('auth.commandTimeoutMs', secret.timeoutMs));
  // A rule may contain a secret address.
  add('notify', countOf(notify.length, 'rule'), JSON.stringify(notify));
  for (const { job, ...request } of watch) add(`watch job ${job}`, JSON.stringify(request));
  return entries;
}

/** Sections that are shown as a whole. */
const WHOLE = ['metrics.listen', 'view', 'watchMine'];

function leaves(value: object, prefix = ''): [key: string, value: unknown][] {
  return Object.entries(value).flatMap(([name, inner]: [string, unknown]): [string, unknown][] => {
    const key = `${prefix}${name}`;
    const isSection = typeof inner === 'object' && inner !== null && !Array.isArray(inner) && !WHOLE.includes(key);
    return isSection ? leaves(inner, `${key}.`) : [[key, inner]];
  });
}

/** Of durations that are not in seconds. */
const UNITS: Readonly<Record<string, readonly [unit: string, ms: number]>> = {
  stallAfterMs: ['Minutes', 60_000],
  'retention.settledMs': ['Days', 86_400_000],
};

function inWordsOfFile(key: string, value: unknown): [key: string, shown: string] {
  const [unit, ms] = UNITS[key] ?? ['Seconds', 1000];
  const shown = typeof value === 'number' && key.endsWith('Ms') ? value / ms : value;
  return [key.replace(/Ms$/, unit), typeof shown === 'string' ? shown : JSON.stringify(shown)];
}

function secretTexts(secret: SecretSource): [shown: string, compared: string] {
  switch (secret.kind) {
    case 'file':
      return [secret.path, secret.path];
    case 'command':
      return [`[${secret.argv[0]}, ...]`, JSON.stringify(secret.argv)];
    case 'credential':
      return [secret.name, secret.name];
  }
}
