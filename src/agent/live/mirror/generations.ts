/**
 * Keeps the old generation of a mirror when its remote file was truncated or rewritten: the bytes are copied to
 * `stdout.log.1` (older ones move up), then the mirror is cut to nothing in place, for `tail -f` follows the inode.
 *
 * Each step can be the last one before a kill; `finishRotation` goes on from the committed `rotation`:
 *   null     nothing was begun
 *   copying  the copy may be missing or torn: it is made again, for the mirror still has the bytes
 *   copied   the copy is whole; if its file is gone, it already has its number; the mirror may or may not be cut
 *
 * Where agents hand jobs over, each step is known to the next owner before it is taken (`Ownership.fence`), and the copy
 * bears a mark of the owner who made it: one who lost the job in the middle of a step touches no copy of the next one.
 */
import { constants } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import type { LiveFileRow } from '../../../store/rows.ts';
import { flushPath } from '../../../system/directories.ts';
import { ALONE, type Ownership } from '../../ownership.ts';
import type { Mirror } from './mirror.ts';

export interface GenerationOptions {
  /** Old generations that are kept of a rewritten file; 0 keeps none. */
  readonly keepGenerations: number;
  /** Commits the row durably. */
  readonly commit: (row: LiveFileRow) => void;
  readonly ownership?: Ownership;
  /** Called at each point where a kill could matter, by its name; tests end the work there. */
  readonly checkpoint: (step: string) => void | Promise<void>;
}

/** Begins a new generation; the returned row stands at position 0 of it. */
export async function beginGeneration(
  row: LiveFileRow,
  mirror: Mirror,
  options: GenerationOptions,
): Promise<LiveFileRow> {
  const { ownership = ALONE } = options;
  const begun: LiveFileRow = { ...row, rotation: 'copying', copyMark: ownership.copyMark(row.jobId) };
  await options.checkpoint('rotation:begin');
  options.commit(begun);
  return finishRotation(begun, mirror, options);
}

/** Goes on with what a kill interrupted; returns the row unchanged if there is nothing to finish. */
export async function finishRotation(
  row: LiveFileRow,
  mirror: Mirror,
  options: GenerationOptions,
): Promise<LiveFileRow> {
  if (row.rotation === null) return row;
  const { checkpoint, ownership = ALONE } = options;
  const keep = keptOf(row, options);
  let at = row;
  if (at.rotation === 'copying') {
    // What another owner began, this one begins anew.
    const copyMark = ownership.copyMark(at.jobId);
    if (copyMark !== at.copyMark) {
      at = { ...at, copyMark };
      options.commit(at);
    }
    await ownership.fence(at);
    await checkpoint('rotation:copy');
    if (keep > 0) await copyDurably(mirror.path, copyOf(at, mirror));
    // What was promised of the mirror is now promised by the copy.
    at = { ...at, rotation: 'copied', position: 0, fingerprint: null, checksum: null, inexact: [] };
    await checkpoint('rotation:copied');
    options.commit(at);
  }
  await ownership.fence(at);
  await checkpoint('rotation:number');
  if (keep > 0 && (await exists(copyOf(at, mirror)))) await numberCopy(at, mirror, options);
  await checkpoint('rotation:cut');
  await mirror.cut(0);
  await mirror.flush();
  const look = await mirror.look();
  const fresh: LiveFileRow = {
    ...at,
    rotation: null,
    copyMark: null,
    generation: at.generation + 1,
    verified: null,
    inode: look.inode,
    modifiedNs: look.modifiedNs,
  };
  await checkpoint('rotation:end');
  // Known to the next owner first: for one who knew of the copy only, there would be nothing in the mirror to be kept.
  await ownership.fence(fresh);
  options.commit(fresh);
  if (at.copyMark !== null) await removeCopies(mirror, Number(at.copyMark));
  return fresh;
}

/** A progress file is rewritten again and again by design: its last state before is enough. */
const keptOf = ({ file }: LiveFileRow, { keepGenerations }: GenerationOptions) =>
  file === 'progress' ? Math.min(1, keepGenerations) : keepGenerations;

const COPY = '.keeping';
/** Where a generation is copied to until it has its number. */
const copyOf = ({ copyMark }: LiveFileRow, mirror: Mirror) =>
  `${mirror.path}${COPY}${copyMark === null ? '' : `-${copyMark}`}`;

async function copyDurably(from: string, to: string): Promise<void> {
  await fs.rm(to, { force: true });
  await fs.copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
  await flushPath(to);
  await flushPath(path.dirname(to));
}

/** Moves the older ones up, as far as the first free number, and gives the copy number 1. */
async function numberCopy(row: LiveFileRow, mirror: Mirror, options: GenerationOptions): Promise<void> {
  const { checkpoint, ownership = ALONE } = options;
  const keep = keptOf(row, options);
  const numbered = (number: number) => `${mirror.path}.${number}`;
  const rename = async (from: string, to: string) => {
    ownership.requireLease(row.jobId);
    await fs.rename(from, to);
  };
  let free = 1;
  while (free < keep && (await exists(numbered(free)))) free++;
  for (let number = free; number > 1; number--) {
    await rename(numbered(number - 1), numbered(number));
    await checkpoint('rotation:moved');
  }
  await rename(copyOf(row, mirror), numbered(1));
  await flushPath(path.dirname(mirror.path));
}

/**
 * Removes what owners up to this one copied and gave no number. The next one may have a copy by now, where this one was
 * stopped for a while: that is all there is of a generation.
 */
async function removeCopies(mirror: Mirror, ownMark: number): Promise<void> {
  const directory = path.dirname(mirror.path);
  const start = `${path.basename(mirror.path)}${COPY}`;
  for (const name of await fs.readdir(directory)) {
    const mark = name.startsWith(start) ? /^(?:-([0-9]+))?$/.exec(name.slice(start.length)) : null;
    if (mark !== null && Number(mark[1] ?? 0) <= ownMark) await fs.rm(path.join(directory, name), { force: true });
  }
}

async function exists(file: string): Promise<boolean> {
  return fs.lstat(file).then(
    () => true,
    () => false,
  );
}
