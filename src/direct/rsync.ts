/**
 * rsync over SSH. It writes to a directory of its own, where a file has its name only when it is whole and its checksum
 * was right; what was cut off waits beside it, and is the beginning of the next try: rsync compares it block by block,
 * so a damaged beginning is mended, and of a file that is here already only what changed travels.
 */
import fs from 'node:fs/promises';
import path from 'node:path';
import type { DirectFile } from '../agent/ports.ts';
import { JobtailError } from '../errors.ts';
import { type ProgramEnd, runProgram } from './program.ts';
import { connectionFailure, HOST_ALIAS, lastLine } from './ssh-access.ts';
import type { SshOrder } from './ssh-transfer.ts';
import { bytesBelow, clearFiles, lengthOf, makeOwnDirectory } from './staging.ts';

/** Where rsync keeps what was cut off. No result can have this name: it is the one of temporary files. */
const PARTIAL_DIRECTORY = '.jobtail-0000000000000000.partial';
const TIMEOUT_SECONDS = 300;
/** Files of one run; those that came are handed over after it. */
const FILES_A_RUN = 1_000;
/** Tries in a row that brought something, and were cut off again. */
const MOST_CUTS = 5;

/** Exit codes of rsync. */
const SOME_FAILED = [23, 24];
const NO_CONNECTION = 255;

export async function fetchByRsync<File extends DirectFile>(order: SshOrder<File>): Promise<string | undefined> {
  const arrival = path.join(order.directory, 'rsync');
  await makeOwnDirectory(arrival);
  await clearFiles(arrival, PARTIAL_DIRECTORY);
  const run = { order, arrival, before: 0, now: 0 };
  for (let at = 0; at < order.files.length; at += FILES_A_RUN) {
    const refused = await bring(order.files.slice(at, at + FILES_A_RUN), run);
    if (refused !== undefined) return refused;
  }
  // Everything came or cannot be had: nothing is waiting to be resumed.
  await fs.rm(arrival, { recursive: true, force: true });
  return undefined;
}

interface Run<File extends DirectFile> {
  readonly order: SshOrder<File>;
  readonly arrival: string;
  /** Bytes of earlier runs, and of this one. */
  before: number;
  now: number;
}

/** Brings some files, through cuts; resolves with the reason if rsync is not allowed. */
async function bring<File extends DirectFile>(files: readonly File[], run: Run<File>): Promise<string | undefined> {
  const { order } = run;
  let left = files;
  for (let cuts = 0; ; ) {
    const keptBefore = await bytesBelow(run.arrival);
    const end = await runRsync(left, run);
    const kept = await bytesBelow(run.arrival);
    const bytes = run.now;
    run.before += run.now;
    run.now = 0;
    const came = await handOver(left, run);
    if (end.code === 0 || SOME_FAILED.includes(end.code ?? -1)) {
      order.onWay('rsync');
      return undefined;
    }
    if (/No space left on device|Disk quota exceeded/.test(end.said)) throw diskFull(end);
    left = left.filter((file) => !came.has(file));
    // Progress is told once a second only; what was kept of a file tells of the first second, too.
    const isCut = bytes > 0 || came.size > 0 || kept > keptBefore;
    if (isCut) order.onWay('rsync');
    const failure = failureOf(end, order);
    if (!isCut && end.code !== NO_CONNECTION && failure === undefined) return lastLine(end.said);
    if (!isCut || ++cuts >= MOST_CUTS) throw failure ?? wasCut(end, order);
  }
}

async function runRsync<File extends DirectFile>(files: readonly File[], run: Run<File>): Promise<ProgramEnd> {
  const { order, arrival } = run;
  const { access, configFile, presentDirectory, maxFileBytes, bytesPerSecond, onBytes, signal } = order;
  const byPath = new Map(files.map((file) => [file.parts.join('/'), file]));
  const output = new Output({
    onBytes: (bytes) => {
      run.now = Math.max(run.now, bytes);
      onBytes(run.before + run.now);
    },
    onTooLarge: (name) => {
      const file = byPath.get(name);
      if (file !== undefined) order.onTooLarge(file);
    },
  });
  return runProgram({
    command: 'rsync',
    args: [
      `--rsh=ssh -F ${inRsh(configFile)}`,
      // Times say nothing here: every file is compared.
      '--ignore-times',
      '--files-from=-',
      '--from0',
      `--partial-dir=${PARTIAL_DIRECTORY}`,
      `--copy-dest=${path.resolve(presentDirectory)}`,
      '--chmod=D700,F600',
      `--timeout=${TIMEOUT_SECONDS}`,
      '--info=progress2,skip1',
      '--no-human-readable',
      '--outbuf=L',
      ...(maxFileBytes === null ? [] : [`--max-size=${maxFileBytes}`]),
      ...(bytesPerSecond === null ? [] : [`--bwlimit=${Math.max(1, Math.round(bytesPerSecond / 1024))}`]),
      '--',
      `${HOST_ALIAS}:${access.basePath}/`,
      `${path.resolve(arrival)}/`,
    ],
    input: Buffer.from([...byPath.keys()].map((name) => `${name}\0`).join('')),
    onOutput: (text) => output.take(text),
    signal,
  });
}

/** A path as a word of `--rsh`, which rsync takes apart itself. */
function inRsh(file: string): string {
  return `'${file.replaceAll("'", "''")}'`;
}

/** Hands over the files that are whole. */
async function handOver<File extends DirectFile>(files: readonly File[], run: Run<File>): Promise<Set<File>> {
  const came = new Set<File>();
  for (const file of files) {
    const arrived = path.join(run.arrival, ...file.parts);
    if ((await lengthOf(arrived)) === undefined) continue;
    await run.order.onFile(file, arrived);
    came.add(file);
  }
  return came;
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

/** The standard output of rsync: progress, in lines that end in a carriage return, and files that were skipped. */
class Output {
  readonly #to: { onBytes(bytes: number): void; onTooLarge(name: string): void };
  #rest = '';

  constructor(to: { onBytes(bytes: number): void; onTooLarge(name: string): void }) {
    this.#to = to;
  }

  take(text: string): void {
    const lines = (this.#rest + text).split(/[\r\n]/);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const bytes = /^ *([0-9]+) +[0-9]+%/.exec(line)?.[1];
      const large = /^(.*) is over max-size$/.exec(line)?.[1];
      if (bytes !== undefined) this.#to.onBytes(Number(bytes));
      else if (large !== undefined) this.#to.onTooLarge(unescaped(large));
    }
  }
}

/** rsync writes what is not printable as `\#` and three octal digits, byte by byte. */
function unescaped(name: string): string {
  const bytes = name.replaceAll(/\\#([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
  return name === bytes ? name : Buffer.from(bytes, 'latin1').toString('utf8');
}
