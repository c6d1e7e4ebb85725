/**
 * The receiving end of the old scp protocol: `scp -f FILE...` on the other side sends the files it was asked for, in that
 * order. The program `scp` opens a connection for each file, which takes longer than most files, and it writes what the
 * other side sends; here hundreds of files share a connection, and not a byte is taken that was not announced.
 */
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import type { DirectFile, FileDigest } from '../agent/ports.ts';
import { writeAll } from '../system/files.ts';
import { runProgram } from '../system/program.ts';
import { Arrivals } from './arrivals.ts';
import { type OnPiece, paceOf } from './pace.ts';
import { NotScp, ScpRecords } from './scp-records.ts';
import { brokeOff, connectionFailure, HOST_ALIAS, lastLine, type SshOrder } from './ssh-access.ts';

const FILES_A_SESSION = 1_000;
/** A command of more than 128 KiB is refused by Linux. */
const COMMAND_CHARACTERS = 64_000;
/** The exit code of ssh where the connection was lost. */
const CONNECTION_LOST = 255;
const YES = '\0';
const NO = '\u0001not wanted\n';

/** A file, and how the other side is told of it. */
interface Named<File> {
  readonly file: File;
  readonly word: string;
  /** Whether the other side has to take quotes away, which not every forced command does. */
  readonly isQuoted: boolean;
}

interface Run<File extends DirectFile> {
  readonly order: SshOrder<File>;
  readonly onPiece: OnPiece;
  readonly arrivals: Arrivals<File>;
  /** Whether the other side ever answered. */
  works: boolean;
  hasBrought: boolean;
}

export async function fetchByScp<File extends DirectFile>(order: SshOrder<File>): Promise<string | undefined> {
  const run = { order, onPiece: paceOf(order), arrivals: new Arrivals(order), works: false, hasBrought: false };
  try {
    return await fetchSessions(sessionsOf(order), run);
  } finally {
    if (!order.signal.aborted) await run.arrivals.handOver();
  }
}

/** Resolves with the reason if the key may not do this. */
async function fetchSessions<File extends DirectFile>(
  sessions: Named<File>[][],
  run: Run<File>,
): Promise<string | undefined> {
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
function sessionsOf<File extends DirectFile>({ files, access }: SshOrder<File>): Named<File>[][] {
  const sessions: Named<File>[][] = [];
  const quoted: Named<File>[][] = [];
  let open: Named<File>[] = [];
  let characters = 0;
  for (const file of files) {
    const remote = `${access.basePath}/${file.parts.join('/')}`;
    // A shell on the other side reads the path; what cannot be quoted simply is left to SOAP.
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
async function fetchSession<File extends DirectFile>(session: readonly Named<File>[], run: Run<File>) {
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
async function receive<File extends DirectFile>(
  file: File,
  records: ScpRecords,
  run: Run<File>,
  reply: (bytes: string) => void,
): Promise<boolean> {
  const { order } = run;
  const record = await records.next();
  if (record.kind !== 'file') return record.kind === 'missing';
  if (record.name !== file.parts.at(-1)) throw new NotScp(record.name);
  if (order.maxFileBytes !== null && record.bytes > order.maxFileBytes) {
    reply(NO);
    order.onTooLarge(file);
    return true;
  }
  reply(YES);
  const local = path.resolve(order.directory, randomBytes(8).toString('hex'));
  let isTaken = false;
  try {
    const digest = await receiveBytes(record.bytes, records, local, run.onPiece);
    if (digest.bytes < record.bytes) return false;
    if (await records.isWhole()) {
      if (!run.hasBrought) order.onWay('scp');
      run.hasBrought = true;
      isTaken = true;
      await run.arrivals.add({ file, path: local, digest }, digest.bytes);
    }
    reply(YES);
    return true;
  } finally {
    if (!isTaken) await fs.rm(local, { force: true });
  }
}

async function receiveBytes(count: number, records: ScpRecords, local: string, onPiece: OnPiece): Promise<FileDigest> {
  const handle = await fs.open(local, 'wx', 0o600);
  try {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const piece of records.bytes(count)) {
      hash.update(piece);
      await writeAll(handle, piece, bytes);
      bytes += piece.length;
      await onPiece(piece.length);
    }
    return { bytes, sha256: hash.digest('hex') };
  } finally {
    await handle.close();
  }
}
