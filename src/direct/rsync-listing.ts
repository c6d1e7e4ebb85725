/** What rsync lists on the other side: single files that it skipped, and all files of a job. */
import path from 'node:path';
import type { ClusterList, Irregular } from '../agent/ports/transfer.ts';
import { JobtailError } from '../errors.ts';
import { type ProgramEnd, printedBy } from '../system/program.ts';
import { causeOf, connectionFailure, unreachable } from './failures.ts';
import { HOST_ALIAS, type SshConnection } from './ssh-access.ts';

const VANISHED = 24;
/** Of an rsync that read all or some of the files. */
export const READ_CODES: readonly (number | null)[] = [0, 23, VANISHED];
const TIMED_OUT = 30;
const NO_CONNECTION = 255;
const MAX_LISTING_BYTES = 64 * 1024 * 1024;
/** rsync prints a line for each link to a missing file. */
const MAX_STDERR = 8 * 1024 * 1024;

export const KINDS: Readonly<Record<string, Irregular>> = {
  p: 'a named pipe',
  s: 'a socket',
  c: 'a device',
  b: 'a device',
  d: 'a link to a directory',
};

interface RsyncEntry {
  /** The first letter of its permissions. */
  readonly kind: string;
  readonly bytes: number;
  readonly name: string;
}

interface RsyncListing {
  readonly listed: readonly RsyncEntry[];
  /** Lines that are no entry of a list. */
  readonly unreadLines: number;
}

interface PrintedListing extends ProgramEnd, RsyncListing {
  /** Whether all messages were kept. */
  readonly isStderrWhole: boolean;
}

interface ListingOptions {
  readonly options: readonly string[];
  /** The names to list; read with the options for that. */
  readonly input?: Buffer;
  /** A local directory, which stays as it is. */
  readonly arrival?: string;
}

export async function listing(
  { access, configFile, idleMs, signal }: SshConnection,
  { options, input, arrival }: ListingOptions,
): Promise<PrintedListing> {
  const places = [`${HOST_ALIAS}:${access.basePath}/`, ...(arrival === undefined ? [] : [`${path.resolve(arrival)}/`])];
  const { printed, ...end } = await printedBy({
    command: 'rsync',
    args: [`--rsh=ssh -F ${inRsh(configFile)}`, '--list-only', ...options, '--no-human-readable', '--', ...places],
    ...(input === undefined ? {} : { input }),
    limit: { idleMs },
    maxBytes: MAX_LISTING_BYTES,
    maxStderr: MAX_STDERR,
    signal,
  });
  const isStderrWhole = end.stderr.length < MAX_STDERR;
  return { ...end, isStderrWhole, ...readListing(printed.toString()) };
}

/** Reads ASCII: other bytes are escaped, and so is each line break of a name. */
function readListing(text: string): RsyncListing {
  const lines = text.split('\n').filter((line) => line !== '');
  const listed = lines.flatMap((line) => {
    const [, kind = '', size = '', name = ''] =
      /^(.)[rwxsStT-]{9}\S* +([0-9.,]+) [0-9/]+ [0-9:]+ (.*)$/.exec(line) ?? [];
    return name === '' ? [] : [{ kind, bytes: Number(size.replaceAll(/[.,]/g, '')), name: unescaped(name) }];
  });
  return { listed, unreadLines: lines.length - listed.length };
}

/** All files below the base path. Rejects if rsync is refused or could not read everything, or if its list is unclear. */
export async function listByRsync(connection: SshConnection): Promise<ClusterList> {
  const { listed, unreadLines, ...end } = await listing(connection, { options: ['--recursive'] });
  // A file that is removed meanwhile is left out.
  if (end.code !== 0 && end.code !== VANISHED) {
    const { host } = connection.access;
    const message = `rsync lists not all files of the job on ${host}: ${causeOf(end.stderr)}`;
    throw failureOf(end, connection) ?? new JobtailError('unexpected-answer', message);
  }
  if (unreadLines > 0)
    throw new JobtailError('unexpected-answer', `rsync printed ${unreadLines} lines that are no list of files`);
  return {
    files: listed.filter(({ kind }) => kind === '-').map(({ name, bytes }) => ({ name, bytes })),
    links: listed.filter(({ kind }) => kind === 'l').length,
  };
}

/** The failure of the connection; undefined if rsync ended for a reason of its own. */
export function failureOf({ code, stderr }: ProgramEnd, { access, idleMs }: SshConnection): JobtailError | undefined {
  if (code === TIMED_OUT)
    return new JobtailError('timeout', `the program rsync brought nothing for ${idleMs / 1000} s`);
  return (
    connectionFailure(stderr, access.host) ?? (code === NO_CONNECTION ? unreachable(stderr, access.host) : undefined)
  );
}

/** A path as a word of `--rsh`, which rsync splits itself. */
export function inRsh(file: string): string {
  return `'${file.replaceAll("'", "''")}'`;
}

/** rsync writes an unprintable byte as `\#` and three octal digits. */
export function unescaped(name: string): string {
  const bytes = name.replaceAll(/\\#([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
  return Buffer.from(bytes, 'latin1').toString();
}
