/** sftp, for keys that permit nothing else: whole files, many over one connection. */
import fs from 'node:fs/promises';
import type { DirectFile } from '../agent/ports.ts';
import { LinkedAbort } from '../linked-abort.ts';
import { type ProgramEnd, type ProgramOptions, runProgram } from '../system/program.ts';
import { Arrivals, lengthOf } from './arrivals.ts';
import { brokeOff, connectionFailure, lastLine } from './failures.ts';
import { HOST_ALIAS, type SshOrder } from './ssh-access.ts';

const FILES_A_SESSION = 1_000;
const FILE_FAILURE = /File ".*" not found|remote open.*(?:No such file|Permission denied)|not a regular file/i;
/** The prompt that it prints before each command. */
const ECHO = 'sftp> get ';

interface Wanted {
  readonly file: DirectFile;
  readonly remote: string;
  readonly local: string;
}

interface Run {
  readonly order: SshOrder;
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
export async function fetchBySftp(order: SshOrder): Promise<string | undefined> {
  const run = { order, arrivals: new Arrivals(order, 'sftp'), bytes: 0 };
  let left = order.files
    .map((file) => ({
      file,
      remote: `${order.access.basePath}/${file.parts.join('/')}`,
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
    if (!order.signal.aborted) await run.arrivals.handOver();
  }
}

/** Fetches files up to the first failure; resolves with their number, or the reason if the key does not permit it. */
async function fetchSession(wanted: readonly Wanted[], run: Run): Promise<number | string> {
  const { order } = run;
  const stop = new LinkedAbort(order.signal);
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
    const end = await runSftp(wanted, order, { talk, progress, signal: stop.signal });
    if (end.code === 0) {
      await take(wanted[begun - 1], run);
      isWhole = true;
      return wanted.length;
    }
    return begun > 0 && FILE_FAILURE.test(end.stderr) ? begun : refusalOf(end, run);
  } catch (error) {
    if (order.signal.aborted || !stop.signal.aborted) throw error;
    if (!(stop.signal.reason instanceof TooLarge)) throw stop.signal.reason;
    // The next file may have begun; the next session fetches it.
    const { one } = stop.signal.reason;
    order.onTooLarge(one.file);
    return Math.max(wanted.indexOf(one) + 1, begun - 1);
  } finally {
    stop.release();
    const last = wanted[begun - 1];
    if (!isWhole && last !== undefined) await fs.rm(last.local, { force: true });
  }
}

interface SftpOptions extends Required<Pick<ProgramOptions, 'talk' | 'signal'>> {
  readonly progress: () => Promise<number>;
}

function runSftp(wanted: readonly Wanted[], order: SshOrder, options: SftpOptions): Promise<ProgramEnd> {
  const { configFile, bytesPerSecond, idleMs } = order;
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
  const { order, arrivals } = run;
  const bytes = (await lengthOf(one.local)) ?? 0;
  if (order.maxFileBytes !== null && bytes > order.maxFileBytes) {
    await fs.rm(one.local, { force: true });
    order.onTooLarge(one.file);
    return;
  }
  run.bytes += bytes;
  order.onBytes(run.bytes);
  await arrivals.add({ file: one.file, path: one.local }, bytes);
}

/** Reports the length of the growing file; a file that is too large stops the program. */
async function growthOf(one: Wanted | undefined, { order, bytes }: Run, stop: LinkedAbort): Promise<number> {
  const length = (one && (await lengthOf(one.local))) ?? 0;
  try {
    order.onBytes(bytes + length);
    if (one !== undefined && order.maxFileBytes !== null && length > order.maxFileBytes) stop.abort(new TooLarge(one));
  } catch (error) {
    stop.abort(error);
  }
  return length;
}

function refusalOf({ stderr }: ProgramEnd, { order, arrivals }: Run): string {
  const failure = connectionFailure(stderr, order.access.host);
  if (failure !== undefined) throw failure;
  if (arrivals.hasCome) throw brokeOff(stderr, order.access.host);
  return lastLine(stderr);
}
