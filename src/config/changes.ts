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
  const { file: _, auth, watch, watchMine, metrics, view, notify, stallAfterMs, ...sections } = config;
  const { secret, ...authRest } = auth;
  const entries = new Map<string, Entry>();
  const add = (key: string, shown: string, compared = shown) => entries.set(key, { shown, compared });

  for (const [key, value] of leaves({ ...sections, auth: authRest })) add(...inWordsOfFile(key, value));
  const secretKey = `auth.${secretNameOf(auth.method)}`;
  add(
    `${secretKey}${{ file: 'File', command: 'Command', credential: 'Credential' }[secret.kind]}`,
    ...secretTexts(secret),
  );
  if (secret.kind === 'command') add(...inWordsOfFile('auth.commandTimeoutMs', secret.timeoutMs));
  add('metrics.listen', metrics.listen === null ? 'null' : `${metrics.listen.host}:${metrics.listen.port}`);
  add('view', view === null ? 'off' : viewText(view));
  add('watchMine', watchMine === null ? 'false' : watchMineText(watchMine));
  // A rule may contain a secret address.
  add('notify', countOf(notify.length, 'rule'), JSON.stringify(notify));
  add('stallAfterMinutes', stallAfterMs === null ? 'null' : `${stallAfterMs / 60_000}`);
  for (const entry of watch) add(`watch job ${entry.job}`, watchText(entry));
  return entries;
}

function leaves(value: object, prefix = ''): [key: string, value: unknown][] {
  return Object.entries(value).flatMap(([name, inner]: [string, unknown]): [string, unknown][] => {
    const key = `${prefix}${name}`;
    const isSection = typeof inner === 'object' && inner !== null && !Array.isArray(inner);
    return isSection ? leaves(inner, `${key}.`) : [[key, inner]];
  });
}

function inWordsOfFile(key: string, value: unknown): [key: string, shown: string] {
  if (key.endsWith('Ms') && typeof value === 'number') return [key.replace(/Ms$/, 'Seconds'), `${value / 1000}`];
  return [key, typeof value === 'string' ? value : JSON.stringify(value)];
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

function watchText({ tasks, files, results, settleAfterMs }: Config['watch'][number]): string {
  const settle = settleAfterMs === null ? '' : `, settled after ${settleAfterMs / 60_000} minutes`;
  return `{tasks ${tasks === null ? 'to be found' : tasks.join(' ') || 'none'}, files ${files.join(' ')}, results ${results ? 'on' : 'off'}${settle}}`;
}

function viewText({ listen, tokenFile, publicUrl }: NonNullable<Config['view']>): string {
  const places = [
    tokenFile === null ? '' : `, token in ${tokenFile}`,
    publicUrl === null ? '' : `, shown at ${publicUrl}`,
  ];
  return `{${'path' in listen ? listen.path : `${listen.host}:${listen.port}`}${places.join('')}}`;
}

function watchMineText({ include, exclude, maxAgeMs, mostJobs }: NonNullable<Config['watchMine']>): string {
  const names = `names ${JSON.stringify(include)} but for ${JSON.stringify(exclude)}`;
  return `{${names}, ended ones of ${maxAgeMs / 86_400_000} days, at most ${mostJobs}}`;
}
