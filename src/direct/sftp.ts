/** sftp, for keys that permit nothing else: whole files, many over one connection. */
import fs from 'node:fs/promises';
import type { DirectFile } from '../agent/ports.ts';
import { LinkedAbort } from '../linked-abort.ts';
import { type ProgramEnd, type ProgramOptions, runProgram } from '../system/program.ts';
import { Arrivals, lengthOf } from './arrivals.ts';
import { brokeOff, connectionFailure, lastLine } from './failures.ts';
import { HOST_ALIAS, type SshRequest } from './ssh-access.ts';

const FILES_A_SESSION = 1_000;
const FILE_FAILURE =
  /File ".*" not found|stat remote: No such file|remote open.*(?:No such file|Permission denied)|not a regular file/i;
/** The prompt that it prints before each command. */
const ECHO = 'sftp> get ';

interface Wanted {
  readonly file: DirectFile;
  readonly remote: string;
  readonly local: string;
}

interface Run {
  readonly request: SshRequest;
  readonly arrivals: Arrivals;
  bytes: number;
}

class TooLarge {
  readonly one: Wanted;

  constructor(one: Wanted) {
    this.one = one;
  }
}

/** Resolves with the reason if the key does not permit this. */
export async function fetchBySftp(request: SshRequest): Promise<string | undefined> {
  const run = { request, arrivals: new Arrivals(request, 'sftp'), bytes: 0 };
  let left = request.files
    .map((file) => ({
      file,
      remote: `${request.access.basePath}/${file.parts.join('/')}`,
      local: run.arrivals.newPath(),
    }))
    // sftp splits its commands, and expands patterns.
    .filter(({ remote }) => !/["'\\*?[\]\p{Cc}\uFFFD]/u.test(remote));
  try {
    while (left.length > 0) {
      const answered = await fetchSession(left.slice(0, FILES_A_SESSION), run);
      if (typeof answered === 'string') return answered;
      left = left.slice(answered);
    }
    return undefined;
  } finally {
    if (!request.signal.aborted) await run.arrivals.handOver();
  }
}

/** Fetches files up to the first failure; resolves with their number, or the reason if the key does not permit it. */
async function fetchSession(wanted: readonly Wanted[], run: Run): Promise<number | string> {
  const { request } = run;
  const stop = new LinkedAbort(request.signal);
  let begun = 0;
  let isWhole = false;
  const talk = async (output: AsyncIterable<Buffer>) => {
    let rest = '';
    for await (const bytes of output) {
      const lines = (rest + bytes.toString('latin1')).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (!line.startsWith(ECHO)) continue;
        await take(wanted[begun - 1], run);
        begun += 1;
      }
    }
  };
  const progress = async () => {
    const length = await growthOf(wanted[begun - 1], run, stop);
    return begun + run.bytes + length;
  };
  try {
    const end = await runSftp(wanted, request, { talk, progress, signal: stop.signal });
    if (end.code === 0) {
      await take(wanted[begun - 1], run);
      isWhole = true;
      return wanted.length;
    }
    const failed = wanted[begun - 1];
    if (failed === undefined || !FILE_FAILURE.test(end.stderr)) return refusalOf(end, run);
    if (/not a regular file/i.test(end.stderr)) request.onIrregular(failed.file, 'no regular file');
    return begun;
  } catch (error) {
    if (request.signal.aborted || !stop.signal.aborted) throw error;
    if (!(stop.signal.reason instanceof TooLarge)) throw stop.signal.reason;
    // The next file may have begun; the next session fetches it.
    const { one } = stop.signal.reason;
    request.onTooLarge(one.file);
    return Math.max(wanted.indexOf(one) + 1, begun - 1);
  } finally {
    stop.release();
    const last = wanted[begun - 1];
    if (last !== undefined) request.onGrowing(last.file, undefined);
    if (!isWhole && last !== undefined) await fs.rm(last.local, { force: true });
  }
}

interface SftpOptions extends Required<Pick<ProgramOptions, 'talk' | 'signal'>> {
  readonly progress: () => Promise<number>;
}

function runSftp(wanted: readonly Wanted[], request: SshRequest, options: SftpOptions): Promise<ProgramEnd> {
  const { configFile, bytesPerSecond, idleMs } = request;
  const { progress, ...rest } = options;
  const kilobits = bytesPerSecond === null ? null : Math.max(1, Math.round((bytesPerSecond * 8) / 1000));
  const limit = kilobits === null ? [] : ['-l', String(kilobits)];
  const commands = wanted.map(({ remote, local }) => `get "${remote}" "${local}"\n`);
  return runProgram({
    ...rest,
    command: 'sftp',
    args: ['-q', '-F', configFile, ...limit, '-b', '-', '--', HOST_ALIAS],
    input: Buffer.from(commands.join('')),
    limit: { idleMs, progress },
  });
}

async function take(one: Wanted | undefined, run: Run): Promise<void> {
  if (one === undefined) return;
  const { request, arrivals } = run;
  const bytes = (await lengthOf(one.local)) ?? 0;
  request.onGrowing(one.file, undefined);
  if (request.maxFileBytes !== null && bytes > request.maxFileBytes) {
    await fs.rm(one.local, { force: true });
    request.onTooLarge(one.file);
    return;
  }
  run.bytes += bytes;
  request.onBytes(run.bytes);
  await arrivals.add({ file: one.file, path: one.local }, bytes);
}

/** Reports the length of the growing file; a file that is too large stops the program. */
async function growthOf(one: Wanted | undefined, { request, bytes }: Run, stop: LinkedAbort): Promise<number> {
  const length = (one && (await lengthOf(one.local))) ?? 0;
  try {
    if (one !== undefined) request.onGrowing(one.file, length);
    request.onBytes(bytes + length);
    if (one !== undefined && request.maxFileBytes !== null && length > request.maxFileBytes)
      stop.abort(new TooLarge(one));
  } catch (error) {
    stop.abort(error);
  }
  return length;
}

function refusalOf({ stderr }: ProgramEnd, { request, arrivals }: Run): string {
  const failure = connectionFailure(stderr, request.access.host);
  if (failure !== undefined) throw failure;
  if (arrivals.hasCome) throw brokeOff(stderr, request.access.host);
  return lastLine(stderr);
}
