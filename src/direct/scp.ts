/**
 * The receiving end of the old scp protocol: `scp -f FILE...` on the other side sends the files it was asked for, in that
 * order. The program `scp` opens a connection for each file, which takes longer than most files, and it writes what the
 * other side sends; here hundreds of files share a connection, and not a byte is taken that was not announced.
 */
import fs from 'node:fs/promises';
import type { DirectFile } from '../agent/ports.ts';
import { runProgram } from '../system/program.ts';
import { Arrivals } from './arrivals.ts';
import { brokeOff, connectionFailure, lastLine } from './failures.ts';
import { NotScp, ScpRecords } from './scp-records.ts';
import { HOST_ALIAS, type SshOrder } from './ssh-access.ts';

const FILES_A_SESSION = 1_000;
/** A command of more than 128 KiB is refused by Linux. */
const COMMAND_CHARACTERS = 64_000;
/** The exit code of ssh where the connection was lost. */
const CONNECTION_LOST = 255;
const YES = '\0';
const NO = '\u0001not wanted\n';

/** A file, and how the other side is told of it. */
interface Named {
  readonly file: DirectFile;
  readonly word: string;
  /** Whether the other side has to take quotes away, which not every forced command does. */
  readonly isQuoted: boolean;
}

interface Run {
  readonly order: SshOrder;
  readonly arrivals: Arrivals;
  /** Whether the other side ever answered. */
  works: boolean;
}

export async function fetchByScp(order: SshOrder): Promise<string | undefined> {
  const run = { order, arrivals: new Arrivals(order, 'scp'), works: false };
  try {
    return await fetchSessions(sessionsOf(order), run);
  } finally {
    if (!order.signal.aborted) await run.arrivals.handOver();
  }
}

/** Resolves with the reason if the key may not do this. */
async function fetchSessions(sessions: Named[][], run: Run): Promise<string | undefined> {
  const { host } = run.order.access;
  let isOneByOne = false;
  // More are added on the way.
  for (const session of sessions) {
    if (isOneByOne && session.length > 1) {
      sessions.push(...session.map((one) => [one]));
      continue;
    }
    const { answered, code, said } = await fetchSession(session, run);
    const left = session.slice(answered);
    if (left.length === 0) continue;
    const failure = connectionFailure(said, host);
    if (failure !== undefined) throw failure;
    if (session.length > 1 && code !== CONNECTION_LOST) {
      // A forced command that allows one file at a time, perhaps.
      isOneByOne = true;
      sessions.push(...left.map((one) => [one]));
    } else if (!run.works) return lastLine(said);
    else if (session[0]?.isQuoted !== true) throw brokeOff(said, host);
  }
  return undefined;
}

/** The files that can be named, as sessions bring them. */
function sessionsOf({ files, access }: SshOrder): Named[][] {
  const sessions: Named[][] = [];
  const quoted: Named[][] = [];
  let open: Named[] = [];
  let characters = 0;
  for (const file of files) {
    const remote = `${access.basePath}/${file.parts.join('/')}`;
    // A shell on the other side reads the path; what cannot be quoted simply is left to the service.
    if (/['\p{Cc}\uFFFD]/u.test(remote)) continue;
    const isQuoted = !/^[A-Za-z0-9_./+=:@%,-]+$/.test(remote);
    const named = { file, word: isQuoted ? `'${remote}'` : remote, isQuoted };
    // Without a shell, one quoted name may be taken for several: by itself, that does not mix up the others.
    if (isQuoted) quoted.push([named]);
    else {
      characters += remote.length + 1;
      if (open.length === 0 || open.length >= FILES_A_SESSION || characters > COMMAND_CHARACTERS) {
        open = [];
        characters = remote.length + 1;
        sessions.push(open);
      }
      open.push(named);
    }
  }
  return [...sessions, ...quoted];
}

/** Brings files over one connection, as far as the other side answers for them. */
async function fetchSession(session: readonly Named[], run: Run) {
  const { configFile, maxFileBytes, idleMs, signal } = run.order;
  let answered = 0;
  const talk = async (output: AsyncIterable<Buffer>, reply: (bytes: string) => void) => {
    const records = new ScpRecords(output);
    // Where nothing will be refused, no round trip is waited for.
    const isAgreed = maxFileBytes === null;
    reply(YES.repeat(isAgreed ? 1 + 2 * session.length : 1));
    for (const { file } of session) {
      if (!(await receive(file, records, run, isAgreed ? () => {} : reply))) return;
      run.works = true;
      answered += 1;
    }
  };
  const args = ['-F', configFile, '-T', '--', HOST_ALIAS, 'scp', '-f', ...session.map(({ word }) => word)];
  try {
    const { code, said } = await runProgram({ command: 'ssh', args, talk, limit: { idleMs }, signal });
    return { answered, code, said };
  } catch (error) {
    if (!(error instanceof NotScp)) throw error;
    return { answered, code: null, said: error.message };
  }
}

/** Brings one file, or learns that it cannot be had. False if the other side ended before. */
async function receive(
  file: DirectFile,
  records: ScpRecords,
  run: Run,
  reply: (bytes: string) => void,
): Promise<boolean> {
  const { order, arrivals } = run;
  const record = await records.next();
  if (record.kind !== 'file') return record.kind === 'missing';
  if (record.name !== file.parts.at(-1)) throw new NotScp(record.name);
  if (order.maxFileBytes !== null && record.bytes > order.maxFileBytes) {
    reply(NO);
    order.onTooLarge(file);
    return true;
  }
  reply(YES);
  const local = arrivals.newPath();
  let isTaken = false;
  try {
    const digest = await arrivals.write(local, records.bytes(record.bytes));
    if (digest.bytes < record.bytes) return false;
    isTaken = await records.isWhole();
    if (isTaken) await arrivals.add({ file, path: local, digest }, digest.bytes);
    reply(YES);
    return true;
  } finally {
    if (!isTaken) await fs.rm(local, { force: true });
  }
}
