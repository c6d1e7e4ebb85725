/** Where the configuration file is. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { JobtailError } from '../errors.ts';

const SYSTEM_FILE = '/etc/agent/config.yaml';

/**
 * The absolute path of the configuration file: the one asked for (`-c`), else `$AGENT_CONFIG`, else `config.yaml` in
 * `cwd`, else `systemFile`. The first two are taken at their word, without a look whether they exist.
 * Throws `config` if there is none.
 */
export function findConfig(
  explicit: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  cwd: string,
  systemFile = SYSTEM_FILE,
): string {
  const named = explicit ?? (env['AGENT_CONFIG'] || undefined);
  if (named !== undefined) return resolve(cwd, named);
  const usual = [resolve(cwd, 'config.yaml'), systemFile];
  const found = usual.find(mayExist);
  if (found !== undefined) return found;
  throw new JobtailError(
    'config',
    `there is no configuration file: no -c, no $AGENT_CONFIG, and nothing at ${usual.join(' or ')}`,
    { hint: 'copy config.example.yaml to one of these places and fill it in, or name yours with -c FILE' },
  );
}

/** Only a file that is surely missing is passed over: one that cannot be read gets its own message later. */
function mayExist(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOTDIR';
  }
}
