/**
 * The receiving end of the old scp protocol: `scp -f FILE...` on the other side sends the requested files in that
 * request. The program `scp` opens a connection for each file, and writes what the other side sends; here hundreds of
 * files share a connection, and only announced bytes are accepted.
 */
import type { DirectFile } from '../agent/ports.ts';
import { Arrivals } from './arrivals.ts';
import { brokeOff, connectionFailure, lastLine } from './failures.ts';
import {
  CONNECTION_LOST,
  MAX_COMMAND_CHARACTERS,
  MAX_WORDS,
  NotScp,
  type Reply,
  receiveFile,
  runScp,
  type ScpRecords,
  type ScpRun,
  YES,
} from './scp-session.ts';
import { fetchOddNames, isPlain } from './scp-wildcards.ts';
import type { SshRequest } from './ssh-access.ts';

/** The words of scp for a pipe, a device and a directory. */
const NOT_REGULAR = /not a regular file/;

/** Resolves with the reason if the key does not permit this. */
export async function fetchByScp(request: SshRequest): Promise<string | undefined> {
  const run = { request, arrivals: new Arrivals(request, 'scp'), works: false };
  const hasPlainName = ({ parts }: DirectFile) => isPlain(`${request.access.basePath}/${parts.join('/')}`);
  const plain = request.files.filter(hasPlainName);
  const odd = request.files.filter((file) => !hasPlainName(file));
  try {
    return (await fetchSessions(sessionsOf(plain, run), run)) ?? (await fetchOddNames(odd, run));
  } finally {
    if (!request.signal.aborted) await run.arrivals.handOver();
  }
}

async function fetchSessions(sessions: DirectFile[][], run: ScpRun): Promise<string | undefined> {
  const { host } = run.request.access;
  let isOneByOne = false;
  // The loop adds more.
  for (const session of sessions) {
    if (isOneByOne && session.length > 1) {
      sessions.push(...session.map((one) => [one]));
      continue;
    }
    const { answered, code, stderr } = await fetchSession(session, run);
    const left = session.slice(answered);
    if (left.length === 0) continue;
    const failure = connectionFailure(stderr, host);
    if (failure !== undefined) throw failure;
    if (session.length > 1 && code !== CONNECTION_LOST) {
      // Perhaps the forced command allows only one file at a time.
      isOneByOne = true;
      sessions.push(...left.map((one) => [one]));
    } else if (!run.works) return lastLine(stderr);
    else throw brokeOff(stderr, host);
  }
  return undefined;
}

const remoteOf = ({ parts }: DirectFile, { request }: ScpRun) => `${request.access.basePath}/${parts.join('/')}`;

function sessionsOf(files: readonly DirectFile[], run: ScpRun): DirectFile[][] {
  const sessions: DirectFile[][] = [];
  let open: DirectFile[] = [];
  let characters = 0;
  for (const file of files) {
    const { length } = remoteOf(file, run);
    characters += length + 1;
    if (open.length === 0 || open.length >= MAX_WORDS || characters > MAX_COMMAND_CHARACTERS) {
      open = [];
      characters = length + 1;
      sessions.push(open);
    }
    open.push(file);
  }
  return sessions;
}

async function fetchSession(session: readonly DirectFile[], run: ScpRun) {
  let answered = 0;
  const converse = async (records: ScpRecords, reply: Reply) => {
    // Without a size limit nothing is refused, so no round trip is needed.
    const isAgreed = run.request.maxFileBytes === null;
    reply(YES.repeat(isAgreed ? 1 + 2 * session.length : 1));
    for (const file of session) {
      if (!(await receive(file, { records, reply: isAgreed ? () => {} : reply }, run))) return;
      run.works = true;
      answered += 1;
    }
  };
  const words = ['-f', ...session.map((file) => remoteOf(file, run))];
  const end = await runScp(words, run, converse);
  return { answered, ...end };
}

/** Receives one file, or its error. False if the other side ended before. */
async function receive(
  file: DirectFile,
  line: { readonly records: ScpRecords; readonly reply: Reply },
  run: ScpRun,
): Promise<boolean> {
  const record = await line.records.next();
  if (record.kind === 'directory' || record.kind === 'up') throw new NotScp('a directory');
  if (record.kind === 'missing' && NOT_REGULAR.test(record.message)) run.request.onIrregular(file, 'no regular file');
  if (record.kind !== 'file') return record.kind === 'missing';
  if (record.name !== file.parts.at(-1)) throw new NotScp(record.name);
  return receiveFile(file, record.bytes, line, run);
}
