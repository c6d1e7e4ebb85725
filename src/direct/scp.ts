/** scp in its old protocol, and sftp: one connection a file, whole files only; for keys that may not use rsync. */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import type { DirectFile } from '../agent/ports.ts';
import { JobtailError } from '../errors.ts';
import { LinkedAbort } from '../linked-abort.ts';
import { type ProgramEnd, runProgram } from './program.ts';
import { connectionFailure, HOST_ALIAS, lastLine, type SshOrder } from './ssh-access.ts';
import { lengthOf } from './staging.ts';

/** One file: how the program is called, and what it says if it is the file that cannot be had. */
interface Tool {
  readonly name: string;
  readonly canName: (remote: string) => boolean;
  /** Whether the other side has to take quotes away, which not every forced command does. */
  readonly isQuoted: (remote: string) => boolean;
  readonly run: (remote: string, local: string, order: Called) => Promise<ProgramEnd>;
  readonly fileFailure: RegExp;
}

interface Called {
  readonly configFile: string;
  readonly bytesPerSecond: number | null;
  readonly signal: AbortSignal;
}

const kilobits = (bytesPerSecond: number | null) =>
  bytesPerSecond === null ? [] : ['-l', String(Math.max(1, Math.round((bytesPerSecond * 8) / 1000)))];

const SCP: Tool = {
  name: 'scp',
  // A shell on the other side reads the path; what cannot be quoted simply is left to SOAP.
  canName: (remote) => !/['\p{Cc}\uFFFD]/u.test(remote),
  isQuoted: (remote) => !/^[A-Za-z0-9_./+=:@%,-]+$/.test(remote),
  run: (remote, local, { configFile, bytesPerSecond, signal }) => {
    const word = SCP.isQuoted(remote) ? `'${remote}'` : remote;
    // -T: the name that comes back is not used, for the target is a file.
    const args = [
      '-O',
      '-T',
      '-q',
      '-F',
      configFile,
      ...kilobits(bytesPerSecond),
      '--',
      `${HOST_ALIAS}:${word}`,
      local,
    ];
    return runProgram({ command: 'scp', args, signal });
  },
  fileFailure: /^scp: .*: (?:No such file|Permission denied|not a regular file|Is a directory)/im,
};

const SFTP: Tool = {
  name: 'sftp',
  // sftp takes its commands apart, and expands patterns.
  canName: (remote) => !/["'\\*?[\]\p{Cc}\uFFFD]/u.test(remote),
  isQuoted: () => false,
  run: (remote, local, { configFile, bytesPerSecond, signal }) => {
    const args = ['-q', '-F', configFile, ...kilobits(bytesPerSecond), '-b', '-', '--', HOST_ALIAS];
    return runProgram({ command: 'sftp', args, input: Buffer.from(`get "${remote}" "${local}"\n`), signal });
  },
  fileFailure: /File ".*" not found|remote open.*(?:No such file|Permission denied)|not a regular file/i,
};

export function fetchByScp<File extends DirectFile>(order: SshOrder<File>): Promise<string | undefined> {
  return fetchEach(SCP, order);
}

export function fetchBySftp<File extends DirectFile>(order: SshOrder<File>): Promise<string | undefined> {
  return fetchEach(SFTP, order);
}

/** How often the growing file is looked at. */
const LOOK_MS = 300;
const TOO_LARGE = 'too-large';

async function fetchEach<File extends DirectFile>(tool: Tool, order: SshOrder<File>): Promise<string | undefined> {
  let bytes = 0;
  let works = false;
  for (const file of order.files) {
    const remote = `${order.access.basePath}/${file.parts.join('/')}`;
    if (!tool.canName(remote)) continue;
    const local = path.resolve(order.directory, randomBytes(8).toString('hex'));
    try {
      const end = await fetchOne(tool, { remote, local, before: bytes, order });
      if (end === TOO_LARGE) order.onTooLarge(file);
      else if (end.code === 0) {
        if (!works) order.onWay(tool.name);
        works = true;
        bytes += (await lengthOf(local)) ?? 0;
        order.onBytes(bytes);
        await order.onFiles([{ file, path: local }]);
      } else if (!tool.fileFailure.test(end.said)) {
        const failure = connectionFailure(end.said, order.access.host);
        if (failure !== undefined) throw failure;
        // A forced command that knows no quotes: the others may come.
        if (tool.isQuoted(remote)) continue;
        if (works) throw broken(end, order.access.host);
        return lastLine(end.said);
      }
    } finally {
      await fs.rm(local, { force: true });
    }
  }
  return undefined;
}

interface OneFile<File extends DirectFile> {
  readonly remote: string;
  readonly local: string;
  /** Bytes of the files before. */
  readonly before: number;
  readonly order: SshOrder<File>;
}

async function fetchOne<File extends DirectFile>(
  tool: Tool,
  one: OneFile<File>,
): Promise<ProgramEnd | typeof TOO_LARGE> {
  const { remote, local, before, order } = one;
  const stop = new LinkedAbort(order.signal);
  const isTooLarge = (length = 0) => order.maxFileBytes !== null && length > order.maxFileBytes;
  const look = async () => {
    const length = await lengthOf(local);
    order.onBytes(before + (length ?? 0));
    if (isTooLarge(length)) stop.abort(TOO_LARGE);
  };
  const looking = setInterval(() => look().catch((error: unknown) => stop.abort(error)), LOOK_MS);
  try {
    const end = await tool.run(remote, local, { ...order, signal: stop.signal });
    return isTooLarge(await lengthOf(local)) ? TOO_LARGE : end;
  } catch (error) {
    if (!stop.signal.aborted || order.signal.aborted) throw error;
    if (stop.signal.reason !== TOO_LARGE) throw stop.signal.reason;
    return TOO_LARGE;
  } finally {
    clearInterval(looking);
    stop.release();
  }
}

function broken(end: ProgramEnd, host: string): JobtailError {
  return new JobtailError('interrupted', `the transfer from ${host} broke off: ${lastLine(end.said)}`, {
    hint: 'the next try begins with this file again',
  });
}
