/** Where a secret lies, without the code that reads it: each command needs the paths, few read a secret. */
import { resolve } from 'node:path';
import type { SecretSource } from '../auth.ts';

/** The file that a secret is read from; undefined for a program, and for a credential without systemd. */
export function secretFileOf(
  source: SecretSource,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (source.kind === 'file') return source.path;
  const directory = env['CREDENTIALS_DIRECTORY'];
  return source.kind === 'credential' && directory ? resolve(directory, source.name) : undefined;
}
