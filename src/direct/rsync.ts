/**
 * rsync over SSH. It writes to a directory of its own, where a file has its name only when it is whole and its checksum
 * was right; what was cut off waits beside it, and is the beginning of the next try: rsync compares it block by block,
 * so a damaged beginning is mended, and of a file that is here already only what changed travels.
 */
import path from 'node:path';
import type { DirectFile } from '../agent/ports.ts';
import { JobtailError } from '../errors.ts';
import { outputOf, type ProgramEnd, runProgram } from './program.ts';
import { RsyncArrivals } from './rsync-arrivals.ts';
import { OUT_FORMAT, RsyncOutput } from './rsync-output.ts';
import { connectionFailure, HOST_ALIAS, lastLine, type SshOrder } from './ssh-access.ts';
import { bytesBelow, makeOwnDirectory, PARTIAL_DIRECTORY, preparePartialDirectories } from './staging.ts';

const TIMEOUT_SECONDS = 300;
/** Files of one run; the higher number where rsync need not check them with the square of it. */
const FILES_A_RUN = 1_000;
const MANY_FILES_A_RUN = 20_000;
/** Tries in a row that brought something, and were cut off again. */
const MOST_CUTS = 5;

/** Exit codes of rsync. */
const SOME_FAILED = [23, 24];
const NO_CONNECTION = 255;

export async function fetchByRsync<File extends DirectFile>(order: SshOrder<File>): Promise<string | undefined> {
  const run = {
    order,
    arrival: path.join(order.directory, 'rsync'),
    growing: path.join(order.directory, 'growing'),
    trust: await trustsSenders(order.signal),
    before: 0,
    now: 0,
  };
  for (const directory of [run.arrival, run.growing]) await makeOwnDirectory(directory);
  const filesARun = run.trust.length > 0 ? MANY_FILES_A_RUN : FILES_A_RUN;
  for (let at = 0; at < order.files.length; at += filesARun) {
    const refused = await bring(order.files.slice(at, at + filesARun), run);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/**
 * The option that leaves out a check of rsync 3.2.5 and later, if it has it: that each name in the list of the other
 * side was asked for, which takes time with the square of their number. It protects a directory that has other files;
 * here it is a directory for this run alone, of which only the files that were asked for are taken.
 */
async function trustsSenders(signal: AbortSignal): Promise<string[]> {
  const said = await outputOf('rsync', ['--version'], signal);
  const [major = 0, minor = 0, patch = 0] = /version v?(\d+)\.(\d+)\.(\d+)/.exec(said)?.slice(1).map(Number) ?? [];
  const isNew = major > 3 || (major === 3 && (minor > 2 || (minor === 2 && patch >= 5)));
  return isNew ? ['--trust-sender'] : [];
}

interface Run<File extends DirectFile> {
  readonly order: SshOrder<File>;
  /** Where files have their names, and where they grow. */
  readonly arrival: string;
  readonly growing: string;
  readonly trust: readonly string[];
  /** Bytes of earlier runs, and of this one. */
  before: number;
  now: number;
}

/** Brings some files, through cuts; resolves with the reason if rsync is not allowed. */
async function bring<File extends DirectFile>(files: readonly File[], run: Run<File>): Promise<string | undefined> {
  const { order } = run;
  const left = new Map(files.map((file) => [file.parts.join('/'), file]));
  let kept = await bytesBelow(run.arrival);
  for (let cuts = 0; ; ) {
    const wanted = left.size;
    const end = await runRsync(left, run);
    const { now } = run;
    run.before += now;
    run.now = 0;
    if (end.code === 0 || SOME_FAILED.includes(end.code ?? -1)) {
      order.onWay('rsync');
      return undefined;
    }
    if (/No space left on device|Disk quota exceeded/.test(end.said)) throw diskFull(end);
    // Progress is told once a second only; what was kept of a file tells of the first second, too.
    const keptBefore = kept;
    kept = await bytesBelow(run.arrival);
    const isCut = now > 0 || left.size < wanted || kept > keptBefore;
    if (isCut) order.onWay('rsync');
    const failure = failureOf(end, order);
    if (!isCut && end.code !== NO_CONNECTION && failure === undefined) return lastLine(end.said);
    if (!isCut || ++cuts >= MOST_CUTS) throw failure ?? wasCut(end, order);
  }
}

/** One run; files that came are taken out of `files`. */
async function runRsync<File extends DirectFile>(files: Map<string, File>, run: Run<File>): Promise<ProgramEnd> {
  const { order, arrival, growing } = run;
  const names = [...files.keys()];
  const large = new Map<string, File>();
  await preparePartialDirectories(arrival, names);
  const arrivals = new RsyncArrivals({ ...order, files, arrival, growing });
  const output = new RsyncOutput({
    onBytes: (bytes) => {
      run.now = Math.max(run.now, bytes);
      order.onBytes(run.before + run.now);
    },
    onFile: (name) => arrivals.tell(name),
    onTooLarge: (name) => {
      const file = files.get(name);
      if (file !== undefined) large.set(name, file);
    },
  });
  try {
    return await runProgram({
      command: 'rsync',
      args: argsOf(run),
      input: Buffer.from(names.map((name) => `${name}\0`).join('')),
      onOutput: (text) => output.take(text),
      signal: arrivals.signal,
    });
  } finally {
    await arrivals.end();
    for (const [name, file] of large) if (files.delete(name)) order.onTooLarge(file);
  }
}

function argsOf<File extends DirectFile>({ order, arrival, growing, trust }: Run<File>): string[] {
  const { access, configFile, presentDirectory, maxFileBytes, bytesPerSecond } = order;
  return [
    `--rsh=ssh -F ${inRsh(configFile)}`,
    // Times say nothing here: every file is compared.
    '--ignore-times',
    '--files-from=-',
    '--from0',
    ...trust,
    `--temp-dir=${path.resolve(growing)}`,
    `--partial-dir=${PARTIAL_DIRECTORY}`,
    `--copy-dest=${path.resolve(presentDirectory)}`,
    '--chmod=D700,F640',
    `--timeout=${TIMEOUT_SECONDS}`,
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

/** A path as a word of `--rsh`, which rsync takes apart itself. */
function inRsh(file: string): string {
  return `'${file.replaceAll("'", "''")}'`;
}

function failureOf<File extends DirectFile>(end: ProgramEnd, { access }: SshOrder<File>): JobtailError | undefined {
  const failure = connectionFailure(end.said, access.host);
  if (failure !== undefined || end.code !== NO_CONNECTION) return failure;
  return new JobtailError('unreachable', `${access.host} cannot be reached by SSH: ${lastLine(end.said)}`, {
    hint: 'look at the network and the firewall between this machine and the cluster',
  });
}

function diskFull(end: ProgramEnd): JobtailError {
  return new JobtailError('disk-full', `no room left for a transfer: ${lastLine(end.said)}`, {
    hint: 'free some space; the agent goes on by itself',
  });
}

function wasCut<File extends DirectFile>(end: ProgramEnd, { access }: SshOrder<File>): JobtailError {
  return new JobtailError('interrupted', `the transfer from ${access.host} was cut off: ${lastLine(end.said)}`, {
    hint: 'what came is kept, and the next try goes on from there',
  });
}
