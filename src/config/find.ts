/** Where the configuration file is. */
import { realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { JobtailError } from '../errors.ts';

const SYSTEM_FILE = '/etc/agent/config.yaml';

export interface ConfigSearch {
  /** The argument of `-c`. */
  readonly explicit: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly systemFile?: string;
  /** The effective user id; undefined where the system has none. */
  readonly uid?: number | undefined;
  /** Receives why `config.yaml` of the working directory is not used, as one sentence. */
  readonly onIgnored: (message: string) => void;
}

/**
 * Returns the absolute path of the configuration file: the one of `-c`, else of `$AGENT_CONFIG`, else `config.yaml` in
 * `cwd`, else `systemFile`. The first two are not examined. A configuration names commands that the agent runs and files
 * that it reads, so the one of the working directory is used only if no other user can have written it, and never
 * for root.
 * @throws JobtailError config, if there is none
 */
export function findConfig(search: ConfigSearch): string {
  const { explicit, env, cwd, systemFile = SYSTEM_FILE, uid = process.geteuid?.(), onIgnored } = search;
  const named = explicit ?? (env['AGENT_CONFIG'] || undefined);
  if (named !== undefined) return resolve(cwd, named);
  const local = resolve(cwd, 'config.yaml');
  const reason = mayExist(local) ? foreignBecause(local, uid) : undefined;
  if (reason !== undefined) onIgnored(`${local} is ignored: ${reason}; to use it, name it with -c`);
  const usual = [...(reason === undefined ? [local] : []), systemFile];
  const found = usual.find(mayExist);
  if (found !== undefined) return found;
  throw new JobtailError(
    'config',
    `there is no configuration file: no -c, no $AGENT_CONFIG, and nothing at ${usual.join(' or ')}`,
    { hint: 'copy config.example.yaml to one of these places and fill it in, or name yours with -c FILE' },
  );
}

/** Whether a file is there. One that cannot be read is, and gets its own message later. */
function mayExist(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOTDIR';
  }
}

/** Why another user may have written `file`, which may be a link; undefined if only the caller can have. */
function foreignBecause(file: string, uid: number | undefined): string | undefined {
  if (uid === undefined) return undefined;
  if (uid === 0) return 'root takes no configuration from the working directory';
  try {
    const real = realpathSync(file);
    for (const place of new Set([dirname(file), dirname(real), real])) {
      const stats = statSync(place);
      if (stats.uid !== uid) return `${place} belongs to another user (uid ${stats.uid})`;
      if (isWritableByOthers(stats)) return `other users can write ${place}`;
    }
  } catch (error) {
    return `its owner cannot be determined (${(error as NodeJS.ErrnoException).code})`;
  }
  return undefined;
}

/** A group with the number of the user is the user's own: many systems make one for each user, and let it write. */
function isWritableByOthers({ mode, uid, gid }: Stats): boolean {
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== uid);
}
