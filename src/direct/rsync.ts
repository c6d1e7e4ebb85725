/**
 * rsync over SSH, into its own directory: a file has its final name only when it is complete with the right checksum. A
 * partial file is the start of the next attempt: rsync compares it block by block, so damage is repaired, and only
 * changes of an existing file are sent.
 */
import fs from 'node:fs/promises';
import path from 'node:path';
import type { DirectFile } from '../agent/ports/transfer.ts';
import { JobtailError } from '../errors.ts';
import { type ProgramEnd, runProgram } from '../system/program.ts';
import {
  bytesBelow,
  GROWING_DIRECTORY,
  makeOwnDirectory,
  PARTIAL_DIRECTORY,
  preparePartialDirectories,
} from './directories.ts';
import { brokeOff, causeOf, refused, unacceptable } from './failures.ts';
import { RsyncArrivals } from './rsync-arrivals.ts';
import { failureOf, inRsh, KINDS, listing, READ_CODES, unescaped } from './rsync-listing.ts';
import { HOST_ALIAS, type SshRequest } from './ssh-access.ts';

/** Files of one run: rsync compares each name of the other side with all requested ones, in quadratic time. */
const FILES_A_RUN = 10_000;
/** While rsync reads an existing file, no bytes arrive; it reads at least so many bytes per millisecond. */
const MIN_READ_BYTES_PER_MS = 20_000;
/** Maximum consecutive attempts that made progress and were interrupted. */
const MAX_CUTS = 5;
const MAX_SHOWN = 200;

export async function fetchByRsync(request: SshRequest): Promise<void> {
  const arrival = path.join(request.directory, 'rsync');
  const run = {
    request,
    arrival,
    growing: path.join(arrival, GROWING_DIRECTORY),
    before: 0,
    now: 0,
    skipped: new Map(),
  };
  for (const directory of [run.arrival, run.growing]) await makeOwnDirectory(directory);
  for (let at = 0; at < request.files.length; at += FILES_A_RUN) {
    await bring(request.files.slice(at, at + FILES_A_RUN), run);
  }
  await reportIrregular(run).catch((error: unknown) => {
    if (request.signal.aborted) throw error;
  });
}

interface RsyncRun {
  readonly request: SshRequest;
  readonly arrival: string;
  readonly growing: string;
  /** What is no regular file, or a link, by name. */
  readonly skipped: Map<string, DirectFile>;
  before: number;
  now: number;
}

/** Transfers files, through interruptions. */
async function bring(files: readonly DirectFile[], run: RsyncRun): Promise<void> {
  const { request } = run;
  const left = new Map(files.map((file) => [file.parts.join('/'), file]));
  let kept = await keptBytes(run);
  for (let cuts = 0; ; ) {
    const wanted = left.size;
    const end = await runRsync(left, kept, run).catch(async (error: unknown) => {
      // Whatever a hostile host sent is not kept for resuming.
      const isHostile = error instanceof JobtailError && error.code === 'unexpected-answer';
      if (isHostile) await fs.rm(run.arrival, { recursive: true, force: true });
      throw error;
    });
    const { now } = run;
    run.before += now;
    run.now = 0;
    // Also of one that read all files, where only names find no room.
    if (/No space left on device|Disk quota exceeded/.test(end.stderr)) throw diskFull(end);
    if (READ_CODES.includes(end.code)) return request.onReached();
    // Progress is reported once a second; that of the first second comes from the partial file.
    const keptBefore = kept;
    kept = await keptBytes(run);
    const isCut = now > 0 || left.size < wanted || kept > keptBefore;
    if (isCut) request.onReached();
    const failure = failureOf(end, request);
    if (isCut && ++cuts < MAX_CUTS) continue;
    throw failure ?? (isCut ? brokeOff : refused)(end.stderr, request.access.host);
  }
}

/** Bytes of partial files, and of complete ones that were not passed on. */
async function keptBytes({ arrival, growing }: RsyncRun): Promise<number> {
  return (await bytesBelow(arrival)) - (await bytesBelow(growing));
}

/** One run; received files are removed from `files`. `keptBytes`: of partial files, which rsync compares, too. */
async function runRsync(files: Map<string, DirectFile>, keptBytes: number, run: RsyncRun): Promise<ProgramEnd> {
  const { request, arrival, growing } = run;
  const names = [...files.keys()];
  const large = new Map<string, DirectFile>();
  const asked = withDirectories(names);
  await preparePartialDirectories(arrival, names);
  const arrivals = new RsyncArrivals({ ...request, host: request.access.host, files, arrival, growing });
  const news: RsyncNews = {
    onBytes: (bytes) => {
      run.now = Math.max(run.now, bytes);
      request.onBytes(run.before + run.now);
    },
    onFile: (name) => {
      if (!asked.has(name)) throw unasked(name, request.access.host);
      arrivals.report(name);
    },
    onTooLarge: (name) => {
      const file = files.get(name);
      if (file !== undefined) large.set(name, file);
    },
    onSkipped: (name) => {
      const file = files.get(name);
      if (file !== undefined) run.skipped.set(name, file);
    },
  };
  try {
    return await runProgram({
      command: 'rsync',
      args: argsOf(run),
      input: Buffer.from(names.map((name) => `${name}\0`).join('')),
      onOutput: rsyncReader(news),
      // The time limit of rsync does not detect a silent host while keep-alives can be sent.
      limit: {
        idleMs: request.idleMs + Math.ceil(Math.max(keptBytes, request.largestPresentBytes) / MIN_READ_BYTES_PER_MS),
        progress: async () => (await bytesBelow(growing)) - files.size,
      },
      signal: arrivals.signal,
    });
  } finally {
    await arrivals.end();
    for (const [name, file] of large) if (files.delete(name)) request.onTooLarge(file);
  }
}

/** Names that rsync may report: the files, and with a slash their parents and entries that are directories. */
function withDirectories(names: readonly string[]): Set<string> {
  const all = new Set(['./', ...names]);
  for (const name of names) {
    for (let at = name.length; at > 0 && !all.has(`${name.slice(0, at)}/`); at = name.lastIndexOf('/', at - 1)) {
      all.add(`${name.slice(0, at)}/`);
    }
  }
  return all;
}

/** rsync 3.2.5 and later refuse such a name themselves, before its file comes. */
function unasked(name: string, host: string): JobtailError {
  return unacceptable(`${host} sends a file that was not requested: ${JSON.stringify(name.slice(0, MAX_SHOWN))}`);
}

/** Of rsync on the other side; its messages are not translated. */
const OTHER_FAILURE = / failed: (?!No such file or directory|Too many levels of symbolic links)/;

/** Lists what rsync skipped, through links where the key permits that, and reports what is no regular file. */
async function reportIrregular({ request, skipped, arrival }: RsyncRun): Promise<void> {
  const input = Buffer.from([...skipped.keys()].map((name) => `${name}\0`).join(''));
  for (const links of skipped.size === 0 ? [] : [['--copy-links'], []]) {
    const { listed, code, stderr, isStderrWhole } = await listing(request, {
      options: [...links, '--files-from=-', '--from0'],
      input,
      arrival,
    });
    if (!READ_CODES.includes(code)) continue;
    const isWithoutFailure = isStderrWhole && !OTHER_FAILURE.test(stderr);
    const kinds = new Map(listed.map(({ name, kind }) => [name, kind]));
    for (const [name, file] of skipped) {
      const kind = kinds.get(name);
      // Through links, a link to a missing file is not listed, nor is one whose target the disk fails to read.
      const isDead = kind === undefined && links.length > 0 && isWithoutFailure;
      const irregular = isDead ? 'a link to a missing file' : KINDS[kind ?? ''];
      if (irregular !== undefined) request.onIrregular(file, irregular);
    }
    return;
  }
}

function argsOf({ request, arrival }: RsyncRun): string[] {
  const { access, configFile, presentDirectory, largestPresentBytes, maxFileBytes, bytesPerSecond } = request;
  return [
    `--rsh=ssh -F ${inRsh(configFile)}`,
    // Times prove nothing here, so every file is compared.
    '--ignore-times',
    '--files-from=-',
    '--from0',
    // Below the target: rsync 3.5 opens each directory of an absolute path again for each file.
    `--temp-dir=${GROWING_DIRECTORY}`,
    `--partial-dir=${PARTIAL_DIRECTORY}`,
    // Where there is something to compare: each name is searched there.
    ...(largestPresentBytes === 0 ? [] : [`--copy-dest=${path.resolve(presentDirectory)}`]),
    '--chmod=D700,F640',
    `--timeout=${Math.ceil(request.idleMs / 1000)}`,
    `--out-format=${OUT_FORMAT}`,
    '--info=progress2,skip1',
    '--no-human-readable',
    '--outbuf=L',
    ...(maxFileBytes === null ? [] : [`--max-size=${maxFileBytes}`]),
    ...(bytesPerSecond === null ? [] : [`--bwlimit=${Math.max(1, Math.round(bytesPerSecond / 1024))}`]),
    '--',
    `${HOST_ALIAS}:${access.basePath}/`,
    `${path.resolve(arrival)}/`,
  ];
}

function diskFull(end: ProgramEnd): JobtailError {
  return new JobtailError('disk-full', `no room left for a transfer: ${causeOf(end.stderr)}`, {
    hint: 'free some space; the agent goes on by itself',
  });
}

/** The line that rsync prints for each file; the number makes it print the line after the bytes. */
const OUT_FORMAT = '+%b %n';

const LINE = /^(?:\+[0-9]+ (.*)| *([0-9]+) +[0-9]+%.*|skipping non-regular file "(.*)"|(.*) is over max-size)$/;
const MAX_LINE = 65_536;

interface RsyncNews {
  onBytes(bytes: number): void;
  /** The file may be damaged, and is then sent again. */
  onFile(name: string): void;
  onTooLarge(name: string): void;
  /** A link, or no regular file. */
  onSkipped(name: string): void;
}

/** Reads ASCII: other bytes are escaped. */
function rsyncReader(news: RsyncNews): (piece: Buffer) => void {
  let rest = '';
  return (piece) => {
    const lines = (rest + piece.toString()).split(/[\r\n]/);
    rest = lines.pop() ?? '';
    // No name is as long, but the other side controls the output.
    if (rest.length > MAX_LINE) throw new JobtailError('unexpected-answer', 'a line of rsync has no end');
    for (const line of lines) {
      const [, came, bytes, skipped, large] = LINE.exec(line) ?? [];
      if (bytes !== undefined) news.onBytes(Number(bytes));
      if (large !== undefined) news.onTooLarge(unescaped(large));
      if (skipped !== undefined) news.onSkipped(unescaped(skipped));
      if (came !== undefined) news.onFile(unescaped(came));
    }
  };
}
